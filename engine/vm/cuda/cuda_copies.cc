#include "vm/cuda/cuda_copies.h"

#include <cstring>
#include <exception>
#include <functional>
#include <utility>

#include "support/error.h"
#include "vm/cuda/cuda_context.h"

#ifdef WHERRY_HAS_CUDA
#include <tvm/ffi/extra/c_env_api.h>
#endif

namespace wherry {

#ifdef WHERRY_HAS_CUDA
namespace {

constexpr unsigned kPortable = 1;       // flag: pinned memory is visible in all contexts
constexpr unsigned kWithoutTiming = 2;  // flag: the event records no time stamp

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

char* address_of(const ffi::Tensor& tensor) {
  return static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset();
}

// One step's buffer in pinned host memory, and the event after the last of its copies.
class Place {
 public:
  Place(const CudaDriver& driver, size_t bytes) : driver_(driver) {
    void* memory = nullptr;
    driver_.check(driver_.allocate_host(&memory, bytes, kPortable), "cuMemHostAlloc");
    memory_ = static_cast<char*>(memory);
    int status = driver_.create_event(&event_, kWithoutTiming);
    if (status != 0) driver_.free_host(memory_);
    driver_.check(status, "cuEventCreate");
  }
  ~Place() {
    driver_.destroy_event(event_);
    driver_.free_host(memory_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void record(void* stream) {
    driver_.check(driver_.record_event(event_, stream), "cuEventRecord");
    open = false;
  }
  void wait() { driver_.check(driver_.wait_for_event(event_), "cuEventSynchronize"); }
  // Waits for all copies of a step that failed in between, also those without an event.
  void settle(void* stream) {
    if (open) record(stream);
    wait();
  }

  char* memory() const { return memory_; }

  uint64_t step = 0;  // number of the step that uses the buffer
  size_t used = 0;    // bytes of the step's arrays in the buffer
  size_t read = 0;    // bytes of the result that is being copied
  bool open = false;  // true if a copy was enqueued after the last event

 private:
  const CudaDriver& driver_;
  char* memory_ = nullptr;
  void* event_ = nullptr;
};

class CudaCopies final : public StepCopies {
 public:
  CudaCopies(const CudaDriver& driver, DLDevice device, const CopySizes& sizes)
      : driver_(driver), device_(device), sizes_{aligned(sizes.written), aligned(sizes.read)} {
    driver_.check(driver_.get_context(&context_), "cuCtxGetCurrent");
    if (context_ == nullptr) throw Error(WHERRY_INTERNAL, "this thread has no context of CUDA's");
    CurrentContext current(driver_, context_);
    for (auto& place : places_) {
      place = std::make_unique<Place>(driver_, sizes_.written + sizes_.read);
    }
  }

  ~CudaCopies() override {
    CurrentContext current(driver_, context_);
    for (auto& place : places_) {
      try {
        place->settle(stream());
      } catch (const Error&) {  // if the device was lost, no copy is running
      }
    }
    for (auto& place : places_) place.reset();
  }

  void begin() override {
    attempt([&] {
      Place& place = next();
      place.settle(stream());
      place.step = ++step_;
      place.used = place.read = 0;
    });
  }

  bool write(const ffi::Tensor& from, const ffi::Tensor& to) override {
    const size_t bytes = ffi::GetDataSize(from);
    Place& place = current();
    if (place.step == 0 || place.used + aligned(bytes) > sizes_.written) return false;
    return attempt([&] {
      char* here = place.memory() + place.used;
      std::memcpy(here, address_of(from), bytes);
      place.used += aligned(bytes);
      place.open = true;
      driver_.check(driver_.copy_to_device(there(to), here, bytes, stream()), "cuMemcpyHtoDAsync");
    });
  }

  uint64_t finish(const ffi::Tensor& result) override {
    Place& place = current();
    const size_t bytes = result.defined() ? ffi::GetDataSize(result) : 0;
    if (place.step == 0) return 0;
    const bool brings = 0 < bytes && bytes <= sizes_.read;
    const bool done = attempt([&] {
      if (brings) {
        place.open = true;
        char* here = place.memory() + sizes_.written;
        driver_.check(driver_.copy_to_host(here, there(result), bytes, stream()),
                      "cuMemcpyDtoHAsync");
      }
      place.record(stream());
      place.read = brings ? bytes : 0;
    });
    return done && brings ? place.step : 0;
  }

  bool take(uint64_t step, const ffi::Tensor& host) override {
    Place& place = of(step);
    const size_t bytes = ffi::GetDataSize(host);
    if (step == 0 || place.step != step || place.read != bytes) return false;
    return attempt([&] {
      place.wait();
      std::memcpy(address_of(host), place.memory() + sizes_.written, bytes);
    });
  }

  const std::string& given_up() const override { return given_up_; }

 private:
  // Runs `call` unless copies are off. Returns false if they are off, or if an error of the call
  // turned them off.
  bool attempt(const std::function<void()>& call) {
    if (!given_up_.empty()) return false;
    CurrentContext current(driver_, context_);
    try {
      call();
      return true;
    } catch (const std::exception& error) {
      given_up_ = error.what();
      return false;
    }
  }

  Place& of(uint64_t step) { return *places_[step % 2]; }
  Place& current() { return of(step_); }
  Place& next() { return of(step_ + 1); }

  void* stream() const { return TVMFFIEnvGetStream(device_.device_type, device_.device_id); }
  static uint64_t there(const ffi::Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(address_of(tensor));
  }

  const CudaDriver& driver_;
  const DLDevice device_;
  const CopySizes sizes_;
  void* context_ = nullptr;
  std::unique_ptr<Place> places_[2];
  uint64_t step_ = 0;
  std::string given_up_;
};

}  // namespace

std::unique_ptr<StepCopies> open_cuda_copies(const CudaDriver& driver, DLDevice device,
                                             const CopySizes& sizes) {
  return std::make_unique<CudaCopies>(driver, device, sizes);
}

std::unique_ptr<StepCopies> open_step_copies(DLDevice device, const CopySizes& sizes) {
  if (device.device_type != kDLCUDA) return nullptr;
  const CudaDriver* driver = cuda_driver();
  return driver == nullptr ? nullptr : open_cuda_copies(*driver, device, sizes);
}
#else
std::unique_ptr<StepCopies> open_step_copies(DLDevice, const CopySizes&) { return nullptr; }
#endif

}  // namespace wherry
