// CUDA's graphs. A step is recorded on a stream of its own, and played on the one that everything
// else of this process' run time goes to, so that what comes before and after stays in order.
#include <utility>

#include "model/cuda/cuda_context.h"
#include "model/cuda/cuda_driver.h"
#include "model/graphs/recorder.h"
#include "support/error.h"

#ifdef WHERRY_HAS_CUDA
#include <tvm/ffi/extra/c_env_api.h>
#endif

namespace wherry {

#ifdef WHERRY_HAS_CUDA
namespace {

constexpr unsigned kNonBlocking = 1;  // waits for no other stream, and none for it
constexpr int kThreadLocal = 1;       // what this thread may not do while it captures is an error

// TVM's launches of this thread go to a stream.
class CurrentStream {
 public:
  CurrentStream(DLDevice device, void* stream) : device_(device) {
    TVM_FFI_CHECK_SAFE_CALL(
        TVMFFIEnvSetStream(device_.device_type, device_.device_id, stream, &before_));
  }
  ~CurrentStream() { TVMFFIEnvSetStream(device_.device_type, device_.device_id, before_, nullptr); }

 private:
  const DLDevice device_;
  TVMFFIStreamHandle before_ = nullptr;
};

class CudaRecording final : public Recording {
 public:
  // Owns the executable.
  CudaRecording(const CudaDriver& driver, DLDevice device, void* context, void* executable)
      : driver_(driver), device_(device), context_(context), executable_(executable) {}
  // One that is under way is freed when it has ended.
  ~CudaRecording() override {
    CurrentContext current(driver_, context_);
    driver_.destroy_executable(executable_);
  }

  // Any thread may: nothing has made the context its own where no array goes by the run time.
  void play() override {
    CurrentContext current(driver_, context_);
    void* stream = TVMFFIEnvGetStream(device_.device_type, device_.device_id);
    driver_.check(driver_.launch(executable_, stream), "cuGraphLaunch");
  }

 private:
  const CudaDriver& driver_;
  const DLDevice device_;
  void* const context_;
  void* const executable_;
};

class CudaRecorder final : public Recorder {
 public:
  CudaRecorder(const CudaDriver& driver, DLDevice device) : driver_(driver), device_(device) {}
  ~CudaRecorder() override {
    if (stream_ == nullptr) return;
    CurrentContext current(driver_, context_);
    driver_.destroy_stream(stream_);
  }

  std::unique_ptr<Recording> record(const std::function<void()>& call) override {
    prepare();
    void* graph = captured(call);
    void* executable = nullptr;
    int status = driver_.instantiate(&executable, graph, 0);
    driver_.destroy_graph(graph);
    driver_.check(status, "cuGraphInstantiateWithFlags");
    return std::make_unique<CudaRecording>(driver_, device_, context_, executable);
  }

 private:
  // The run time has made its context this thread's when the step's arrays were copied.
  void prepare() {
    if (stream_ != nullptr) return;
    driver_.check(driver_.get_context(&context_), "cuCtxGetCurrent");
    driver_.check(driver_.create_stream(&stream_, kNonBlocking), "cuStreamCreate");
  }

  void* captured(const std::function<void()>& call) {
    CurrentStream current(device_, stream_);
    driver_.check(driver_.begin_capture(stream_, kThreadLocal), "cuStreamBeginCapture");
    void* graph = nullptr;
    try {
      call();
    } catch (...) {
      if (driver_.end_capture(stream_, &graph) == 0) driver_.destroy_graph(graph);
      throw;
    }
    driver_.check(driver_.end_capture(stream_, &graph), "cuStreamEndCapture");
    return graph;
  }

  const CudaDriver& driver_;
  const DLDevice device_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Recorder> open_recorder(DLDevice device) {
  if (device.device_type != kDLCUDA) return nullptr;
  const CudaDriver* driver = cuda_driver();
  if (driver == nullptr) return nullptr;
  return std::make_unique<CudaRecorder>(*driver, device);
}
#else
std::unique_ptr<Recorder> open_recorder(DLDevice) { return nullptr; }
#endif

}  // namespace wherry
