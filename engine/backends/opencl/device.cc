#include "backends/opencl/device.h"

#include <tvm/ffi/error.h>

#include <cstring>
#include <utility>
#include <vector>

namespace wherry::opencl {

namespace {

std::vector<DeviceId> devices_of(Platform platform, Bits types) {
  const Api& cl = Api::get();
  Uint count = 0;
  Int status = cl.GetDeviceIDs(platform, types, 0, nullptr, &count);
  if (status == kDeviceNotFound || count == 0) return {};
  check(status, "clGetDeviceIDs");
  std::vector<DeviceId> ids(count);
  check(cl.GetDeviceIDs(platform, types, count, ids.data(), nullptr), "clGetDeviceIDs");
  return ids;
}

std::vector<Platform> platforms() {
  const Api& cl = Api::get();
  Uint count = 0;
  Int status = cl.GetPlatformIDs(0, nullptr, &count);
  if (status == kPlatformNotFound || count == 0) return {};
  check(status, "clGetPlatformIDs");
  std::vector<Platform> platforms(count);
  check(cl.GetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  return platforms;
}

void wait_for(Event done) {
  Int status = Api::get().WaitForEvents(1, &done);
  Api::get().ReleaseEvent(done);
  check(status, "clWaitForEvents");
}

Memory memory_of(const void* data) { return static_cast<const Buffer*>(data)->memory; }

backends::DeviceList enumerate() {
  backends::DeviceList list;
  for (Bits types : {kTypeGpu | kTypeAccelerator, kTypeCpu}) {
    for (Platform platform : platforms()) {
      for (DeviceId id : devices_of(platform, types)) {
        try {
          list.devices.push_back(std::make_unique<OpenClDevice>(id));
        } catch (const tvm::ffi::Error& error) {
          // A broken driver must not hide the other drivers' devices.
          list.problems += "\n  " + std::string(error.message());
        }
      }
    }
    if (!list.devices.empty()) break;
  }
  return list;
}

}  // namespace

size_t Pool::rounded(size_t bytes) {
  size_t step = 64;
  while (step * 16 <= bytes) step *= 2;
  return bytes == 0 ? step : (bytes + step - 1) / step * step;
}

Buffer* Pool::take(size_t rounded_bytes) {
  auto match = free_.find(rounded_bytes);
  if (match == free_.end()) return nullptr;
  Buffer* buffer = match->second.release();
  free_.erase(match);
  bytes_ -= rounded_bytes;
  return buffer;
}

void Pool::give(Buffer* buffer) {
  std::unique_ptr<Buffer> owned(buffer);
  if (bytes_ + buffer->bytes > kMostBytes) {
    // OpenCL keeps the memory until running commands are done (OpenCL 1.2, clReleaseMemObject).
    Api::get().ReleaseMemObject(buffer->memory);
    return;
  }
  bytes_ += buffer->bytes;
  free_.emplace(buffer->bytes, std::move(owned));
}

void Pool::clear() {
  for (auto& [bytes, buffer] : free_) Api::get().ReleaseMemObject(buffer->memory);
  free_.clear();
  bytes_ = 0;
}

OpenClDevice::OpenClDevice(DeviceId id) : id_(id) {
  const Api& cl = Api::get();
  Int status = kSuccess;
  context_ = cl.CreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  queue_ = cl.CreateCommandQueue(context_, id, 0, &status);
  check(status, "clCreateCommandQueue");
}

void* OpenClDevice::allocate(size_t bytes) {
  size_t rounded = Pool::rounded(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (Buffer* reused = pool_.take(rounded)) return reused;
  const Api& cl = Api::get();
  Int status = kSuccess;
  Memory memory = cl.CreateBuffer(context_, kReadWrite, rounded, nullptr, &status);
  if (status != kSuccess) {  // frees the pool's buffers and tries again
    pool_.clear();
    check(cl.Finish(queue_), "clFinish");
    memory = cl.CreateBuffer(context_, kReadWrite, rounded, nullptr, &status);
  }
  std::string call = "clCreateBuffer of " + std::to_string(rounded) + " bytes";
  check(status, call.c_str());
  return new Buffer{memory, rounded};
}

void OpenClDevice::free(void* data) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Transfer& fetched : fetched_) {
    if (fetched.memory == memory_of(data)) fetched.memory = nullptr;
  }
  pool_.give(static_cast<Buffer*>(data));
}

template <size_t N>
OpenClDevice::Transfer& OpenClDevice::next(std::array<Transfer, N>& transfers, size_t& turn) {
  Transfer& transfer = transfers[turn++ % N];
  transfer.memory = nullptr;
  if (transfer.done != nullptr) wait_for(std::exchange(transfer.done, nullptr));
  return transfer;
}

std::string OpenClDevice::text(Uint key) const {
  const Api& cl = Api::get();
  size_t size = 0;
  check(cl.GetDeviceInfo(id_, key, 0, nullptr, &size), "clGetDeviceInfo");
  std::string value(size, '\0');
  check(cl.GetDeviceInfo(id_, key, size, value.data(), nullptr), "clGetDeviceInfo");
  return value.substr(0, value.find('\0'));
}

bool OpenClDevice::has_extension(const std::string& name) const {
  return (" " + text(kDeviceExtensions) + " ").find(" " + name + " ") != std::string::npos;
}

std::string OpenClDevice::identity() const {
  return text(kDeviceName) + " | " + text(kDeviceVendor) + " | " + text(kDeviceVersion) + " | " +
         text(kDriverVersion);
}

backends::DeviceFacts OpenClDevice::facts() const {
  backends::DeviceFacts facts;
  facts.name = text(kDeviceName);
  facts.driver = text(kDriverVersion);
  bool own = number<Uint>(kHostUnifiedMemory) == 0;
  facts.software = (number<Bits>(kDeviceType) & kTypeCpu) != 0;
  facts.discrete = own && !facts.software;
  facts.memory = number<uint64_t>(kGlobalMemSize);
  facts.available_memory = -1;
  facts.largest_buffer = number<uint64_t>(kMaxMemAllocSize);
  if (has_extension("cl_amd_device_attribute_query")) {
    // Total free memory and largest free block, as the driver reports them.
    size_t kilobytes[2] = {0, 0};
    Int status =
        Api::get().GetDeviceInfo(id_, kGlobalFreeMemoryAmd, sizeof kilobytes, kilobytes, nullptr);
    if (status == kSuccess) facts.available_memory = static_cast<int64_t>(kilobytes[0]) * 1024;
  }
  facts.threads_per_block = static_cast<int64_t>(number<size_t>(kMaxWorkGroupSize));
  facts.shared_memory = static_cast<int64_t>(number<uint64_t>(kLocalMemSize));
  facts.units = number<Uint>(kMaxComputeUnits);
  facts.clock_khz = static_cast<int64_t>(number<Uint>(kMaxClockFrequency)) * 1000;
  return facts;
}

void OpenClDevice::copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                        size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  check(Api::get().EnqueueCopyBuffer(queue_, memory_of(from), memory_of(to), from_offset, to_offset,
                                     bytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
}

// Small writes are copied into our own memory first: waiting for a write would wait for all earlier
// commands.
void OpenClDevice::write(const char* host, void* to, size_t to_offset, size_t bytes) {
  constexpr size_t kSmall = size_t{64} << 10;
  std::lock_guard<std::mutex> lock(mutex_);
  const Api& cl = Api::get();
  if (bytes > kSmall) {
    check(cl.EnqueueWriteBuffer(queue_, memory_of(to), kTrue, to_offset, bytes, host, 0, nullptr,
                                nullptr),
          "clEnqueueWriteBuffer");
    return;
  }
  Transfer& transfer = next(written_, write_turn_);
  transfer.staging.assign(host, bytes);
  check(cl.EnqueueWriteBuffer(queue_, memory_of(to), kFalse, to_offset, bytes,
                              transfer.staging.data(), 0, nullptr, &transfer.done),
        "clEnqueueWriteBuffer");
}

void OpenClDevice::read(const void* from, size_t from_offset, char* host, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  check(Api::get().EnqueueReadBuffer(queue_, memory_of(from), kTrue, from_offset, bytes, host, 0,
                                     nullptr, nullptr),
        "clEnqueueReadBuffer");
}

void OpenClDevice::start(const void* from, size_t from_offset, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Api& cl = Api::get();
  Transfer& transfer = next(fetched_, fetch_turn_);
  transfer.staging.resize(bytes);
  check(cl.EnqueueReadBuffer(queue_, memory_of(from), kFalse, from_offset, bytes,
                             transfer.staging.data(), 0, nullptr, &transfer.done),
        "clEnqueueReadBuffer");
  transfer.memory = memory_of(from);
  transfer.offset = from_offset;
  transfer.bytes = bytes;
  check(cl.Flush(queue_), "clFlush");
}

bool OpenClDevice::take(const void* from, size_t from_offset, char* host, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Transfer& transfer : fetched_) {
    bool same = transfer.memory == memory_of(from) && transfer.offset == from_offset;
    if (!same || transfer.bytes != bytes) continue;
    transfer.memory = nullptr;
    wait_for(std::exchange(transfer.done, nullptr));
    std::memcpy(host, transfer.staging.data(), bytes);
    return true;
  }
  return false;
}

Int OpenClDevice::launch(Kernel kernel, int dimensions, const size_t* global, const size_t* local) {
  std::lock_guard<std::mutex> lock(mutex_);
  return Api::get().EnqueueNDRangeKernel(queue_, kernel, static_cast<Uint>(dimensions), nullptr,
                                         global, local, 0, nullptr, nullptr);
}

void OpenClDevice::wait() { check(Api::get().Finish(queue_), "clFinish"); }

backends::Devices& devices() {
  // The devices are never destroyed, because tensors of static storage duration may outlive any
  // order of destruction.
  static auto* all = new backends::Devices(
      kDLOpenCL, "OpenCL", "pocl-opencl-icd is one that runs on the CPU", enumerate);
  return *all;
}

}  // namespace wherry::opencl
