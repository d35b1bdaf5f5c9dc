#include "backends/opencl/device.h"

#include <tvm/ffi/error.h>

#include <utility>

namespace wherry::opencl {

namespace {

thread_local int current_device = 0;

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
  std::vector<Platform> found(count);
  check(cl.GetPlatformIDs(count, found.data(), nullptr), "clGetPlatformIDs");
  return found;
}

bool is_ours(DLDevice device) { return device.device_type == kDLOpenCL; }

}  // namespace

size_t Pool::rounded(size_t bytes) {
  size_t step = 64;
  while (step * 16 <= bytes) step *= 2;
  return bytes == 0 ? step : (bytes + step - 1) / step * step;
}

Buffer* Pool::take(size_t rounded_bytes) {
  auto found = free_.find(rounded_bytes);
  if (found == free_.end()) return nullptr;
  Buffer* buffer = found->second.release();
  free_.erase(found);
  bytes_ -= rounded_bytes;
  return buffer;
}

void Pool::give(Buffer* buffer) {
  std::unique_ptr<Buffer> owned(buffer);
  if (bytes_ + buffer->bytes > kMostBytes) {
    // Commands under way keep the memory until they are done (OpenCL 1.2, clReleaseMemObject).
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

Device::Device(DeviceId id) : id_(id) {
  const Api& cl = Api::get();
  Int status = kSuccess;
  context_ = cl.CreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  queue_ = cl.CreateCommandQueue(context_, id, 0, &status);
  check(status, "clCreateCommandQueue");
}

Buffer* Device::allocate(size_t bytes) {
  size_t rounded = Pool::rounded(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  if (Buffer* reused = pool_.take(rounded)) return reused;
  const Api& cl = Api::get();
  Int status = kSuccess;
  Memory memory = cl.CreateBuffer(context_, kReadWrite, rounded, nullptr, &status);
  if (status != kSuccess) {  // the pool may hold what is missing
    pool_.clear();
    check(cl.Finish(queue_), "clFinish");
    memory = cl.CreateBuffer(context_, kReadWrite, rounded, nullptr, &status);
  }
  std::string call = "clCreateBuffer of " + std::to_string(rounded) + " bytes";
  check(status, call.c_str());
  return new Buffer{memory, rounded};
}

void Device::free(Buffer* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  pool_.give(buffer);
}

std::string Device::text(Uint key) const {
  const Api& cl = Api::get();
  size_t size = 0;
  check(cl.GetDeviceInfo(id_, key, 0, nullptr, &size), "clGetDeviceInfo");
  std::string value(size, '\0');
  check(cl.GetDeviceInfo(id_, key, size, value.data(), nullptr), "clGetDeviceInfo");
  return value.substr(0, value.find('\0'));
}

bool Device::has_extension(const std::string& name) const {
  return (" " + text(kDeviceExtensions) + " ").find(" " + name + " ") != std::string::npos;
}

std::string Device::identity() const {
  return text(kDeviceName) + " | " + text(kDeviceVendor) + " | " + text(kDeviceVersion) + " | " +
         text(kDriverVersion);
}

Devices& Devices::get() {
  // Never destroyed: tensors of static storage duration may outlive any order of destruction.
  static Devices* devices = new Devices();
  return *devices;
}

void Devices::find() {
  std::vector<std::unique_ptr<Device>> found;
  for (Bits types : {kTypeGpu | kTypeAccelerator, kTypeCpu}) {
    for (Platform platform : platforms()) {
      for (DeviceId id : devices_of(platform, types)) {
        try {
          found.push_back(std::make_unique<Device>(id));
        } catch (const tvm::ffi::Error& error) {  // one broken driver does not spoil the others
          problems_ += "\n  " + std::string(error.message());
        }
      }
    }
    if (!found.empty()) break;
  }
  devices_ = std::move(found);
}

Device& Devices::device(int index) {
  std::call_once(found_, [this] { find(); });
  if (index < 0 || static_cast<size_t>(index) >= devices_.size()) {
    if (devices_.empty()) {
      TVM_FFI_THROW(RuntimeError) << "this machine has no OpenCL device that works; "
                                  << "pocl-opencl-icd is one that runs on the CPU" << problems_;
    }
    TVM_FFI_THROW(RuntimeError) << "no OpenCL device " << index << ": this machine has "
                                << devices_.size() << ", counted from 0" << problems_;
  }
  return *devices_[static_cast<size_t>(index)];
}

int Devices::current() { return current_device; }

void Devices::SetDevice(DLDevice device) { current_device = device.device_id; }

void Devices::GetAttr(DLDevice which, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) {
  if (kind == tvm::runtime::kExist) {
    try {
      device(which.device_id);
      *result = 1;
    } catch (const tvm::ffi::Error&) {
      *result = 0;
    }
    return;
  }
  Device& found = device(which.device_id);
  switch (kind) {
    case tvm::runtime::kMaxThreadsPerBlock:
      *result = static_cast<int64_t>(found.number<size_t>(kMaxWorkGroupSize));
      break;
    case tvm::runtime::kWarpSize:
      *result = 1;
      break;
    case tvm::runtime::kMaxSharedMemoryPerBlock:
      *result = static_cast<int64_t>(found.number<uint64_t>(kLocalMemSize));
      break;
    case tvm::runtime::kDeviceName:
      *result = tvm::ffi::String(found.text(kDeviceName));
      break;
    case tvm::runtime::kMaxClockRate:
      *result = static_cast<int64_t>(found.number<Uint>(kMaxClockFrequency)) * 1000;  // kHz
      break;
    case tvm::runtime::kMultiProcessorCount:
      *result = static_cast<int64_t>(found.number<Uint>(kMaxComputeUnits));
      break;
    case tvm::runtime::kTotalGlobalMemory:
      *result = static_cast<int64_t>(found.number<uint64_t>(kGlobalMemSize));
      break;
    case tvm::runtime::kDriverVersion:
      *result = tvm::ffi::String(found.text(kDriverVersion));
      break;
    default:  // unknown here: the result stays None, as the interface has it
      break;
  }
}

void* Devices::AllocDataSpace(DLDevice which, size_t bytes, size_t, DLDataType) {
  return device(which.device_id).allocate(bytes);
}

void Devices::FreeDataSpace(DLDevice which, void* data) {
  device(which.device_id).free(static_cast<Buffer*>(data));
}

void* Devices::AllocWorkspace(DLDevice which, size_t bytes, DLDataType) {
  return device(which.device_id).allocate(bytes);
}

void Devices::FreeWorkspace(DLDevice which, void* data) { FreeDataSpace(which, data); }

void Devices::StreamSync(DLDevice which, TVMStreamHandle) {
  check(Api::get().Finish(device(which.device_id).queue()), "clFinish");
}

void Devices::CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                             size_t bytes, DLDevice from_device, DLDevice to_device, DLDataType,
                             TVMStreamHandle) {
  if (bytes == 0) return;
  const Api& cl = Api::get();
  auto memory = [](const void* data) { return static_cast<const Buffer*>(data)->memory; };
  if (is_ours(from_device) && is_ours(to_device)) {
    if (from_device.device_id != to_device.device_id) {
      TVM_FFI_THROW(RuntimeError) << "OpenCL: no copies from device " << from_device.device_id
                                  << " to " << to_device.device_id << "; go through the host";
    }
    check(cl.EnqueueCopyBuffer(device(from_device.device_id).queue(), memory(from), memory(to),
                               from_offset, to_offset, bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  } else if (is_ours(from_device)) {
    check(cl.EnqueueReadBuffer(device(from_device.device_id).queue(), memory(from), kTrue,
                               from_offset, bytes, static_cast<char*>(to) + to_offset, 0, nullptr,
                               nullptr),
          "clEnqueueReadBuffer");
  } else {
    check(cl.EnqueueWriteBuffer(device(to_device.device_id).queue(), memory(to), kTrue, to_offset,
                                bytes, static_cast<const char*>(from) + from_offset, 0, nullptr,
                                nullptr),
          "clEnqueueWriteBuffer");
  }
}

}  // namespace wherry::opencl
