// OpenCL devices. Each has memory, copies and one command queue.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_DEVICE_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_DEVICE_H_

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/devices.h"
#include "backends/opencl/api.h"

namespace wherry::opencl {

// The memory of one tensor: the data pointer of a tensor on these devices points to a Buffer.
struct Buffer {
  Memory memory;
  size_t bytes;  // allocated size in bytes
};

// Keeps freed buffers by size. They are reused without waiting, because a device has one queue,
// which executes commands in order.
class Pool {
 public:
  // Rounds a size up to a multiple of 1/8 of its power of two, so that near sizes share buffers.
  static size_t rounded(size_t bytes);

  // Takes a free buffer of this size; null if there is none.
  Buffer* take(size_t rounded_bytes);
  void give(Buffer* buffer);
  void clear();

 private:
  // Upper bound on the bytes of all free buffers.
  static constexpr size_t kMostBytes = size_t{256} << 20;
  std::multimap<size_t, std::unique_ptr<Buffer>> free_;
  size_t bytes_ = 0;
};

// One OpenCL device with its context and command queue.
class OpenClDevice final : public backends::Device {
 public:
  // Throws an error of tvm-ffi if the driver fails to create a context or queue.
  explicit OpenClDevice(DeviceId id);

  Context context() const { return context_; }
  DeviceId id() const { return id_; }

  backends::DeviceFacts facts() const override;
  void* allocate(size_t bytes) override;
  void free(void* data) override;
  void copy(const void* from, size_t from_offset, void* to, size_t to_offset,
            size_t bytes) override;
  void write(const char* host, void* to, size_t to_offset, size_t bytes) override;
  void read(const void* from, size_t from_offset, char* host, size_t bytes) override;
  void start(const void* from, size_t from_offset, size_t bytes) override;
  bool take(const void* from, size_t from_offset, char* host, size_t bytes) override;
  void wait() override;

  // Launches a kernel whose arguments are set; returns OpenCL's status.
  Int launch(Kernel kernel, int dimensions, const size_t* global, const size_t* local);

  template <typename T>
  T number(Uint key) const {
    T value{};
    check(Api::get().GetDeviceInfo(id_, key, sizeof value, &value, nullptr), "clGetDeviceInfo");
    return value;
  }
  std::string text(Uint key) const;
  bool has_extension(const std::string& name) const;
  // Returns name, vendor and versions of the device, on which a program's binary depends.
  std::string identity() const;

 private:
  DeviceId id_;
  Context context_;
  Queue queue_;
  // An asynchronous copy between the device and our own host memory.
  struct Transfer {
    Memory memory = nullptr;  // device memory of the copy; null if there is no result to take
    size_t offset = 0, bytes = 0;
    std::string staging;
    Event done = nullptr;  // event of the running copy; null if no copy is running
  };
  // Returns the next transfer in round robin; waits until its copy is done.
  template <size_t N>
  Transfer& next(std::array<Transfer, N>& transfers, size_t& turn);

  std::mutex mutex_;  // guards every field below
  Pool pool_;
  std::array<Transfer, 2> fetched_;   // asynchronous reads that `start` requested
  std::array<Transfer, 64> written_;  // small writes; 64 are enough for at least two steps
  size_t fetch_turn_ = 0, write_turn_ = 0;
};

// Returns this machine's OpenCL GPUs and accelerators, or its CPUs if it has neither.
backends::Devices& devices();

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_DEVICE_H_
