#include "backends/devices.h"

#include <tvm/ffi/error.h>

#include <exception>
#include <sstream>
#include <utility>

namespace wherry::backends {

namespace {

thread_local int current_device = 0;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte >= 0x20 && byte < 0x7f) {
      // Bytes outside of ASCII are replaced, because drivers' names have no defined encoding.
      result += c;
    }
  }
  return result + "\"";
}

void write_facts(std::ostringstream& out, const DeviceFacts& facts) {
  out << "{\"name\": " << quoted(facts.name) << ", \"driver\": " << quoted(facts.driver)
      << ", \"discrete\": " << (facts.discrete ? "true" : "false")
      << ", \"software\": " << (facts.software ? "true" : "false")
      << ", \"memory\": " << facts.memory << ", \"available_memory\": " << facts.available_memory
      << ", \"largest_buffer\": " << facts.largest_buffer
      << ", \"threads_per_block\": " << facts.threads_per_block
      << ", \"shared_memory\": " << facts.shared_memory << "}";
}

}  // namespace

Devices::Devices(DLDeviceType type, std::string title, std::string hint,
                 std::function<DeviceList()> find)
    : type_(type), title_(std::move(title)), hint_(std::move(hint)), find_(std::move(find)) {}

const DeviceList& Devices::list() {
  std::call_once(once_, [this] {
    try {
      list_ = find_();
    } catch (const tvm::ffi::Error& error) {
      list_.problems += "\n  " + std::string(error.message());
    }
  });
  return list_;
}

Device& Devices::device(int index) {
  const DeviceList& all = list();
  if (index < 0 || static_cast<size_t>(index) >= all.devices.size()) {
    if (all.devices.empty()) {
      TVM_FFI_THROW(RuntimeError) << "this machine has no " << title_ << " device that works; "
                                  << hint_ << all.problems;
    }
    TVM_FFI_THROW(RuntimeError) << "no " << title_ << " device " << index << ": this machine has "
                                << all.devices.size() << ", counted from 0" << all.problems;
  }
  return *all.devices[static_cast<size_t>(index)];
}

int Devices::current() { return current_device; }

void Devices::start(const tvm::ffi::Tensor& tensor) {
  if (tvm::ffi::GetDataSize(tensor) == 0) return;
  device(tensor.device().device_id)
      .start(tensor.data_ptr(), tensor.byte_offset(), tvm::ffi::GetDataSize(tensor));
}

void Devices::take(const tvm::ffi::Tensor& tensor, const tvm::ffi::Tensor& host) {
  size_t bytes = tvm::ffi::GetDataSize(tensor);
  if (bytes == 0) return;
  Device& from = device(tensor.device().device_id);
  auto* to = static_cast<char*>(host.data_ptr()) + host.byte_offset();
  if (from.take(tensor.data_ptr(), tensor.byte_offset(), to, bytes)) return;
  from.read(tensor.data_ptr(), tensor.byte_offset(), to, bytes);
}

std::string Devices::to_json() {
  std::ostringstream out;
  out << "{\"devices\": [";
  const char* comma = "";
  for (const auto& device : list().devices) {
    out << comma;
    write_facts(out, device->facts());
    comma = ", ";
  }
  out << "], \"problems\": " << quoted(list().problems) << "}";
  return out.str();
}

void Devices::SetDevice(DLDevice device) { current_device = device.device_id; }

void Devices::GetAttr(DLDevice which, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* result) {
  if (kind == tvm::runtime::kExist) {
    size_t count = list().devices.size();
    *result = which.device_id >= 0 && static_cast<size_t>(which.device_id) < count ? 1 : 0;
    return;
  }
  DeviceFacts facts = device(which.device_id).facts();
  switch (kind) {
    case tvm::runtime::kMaxThreadsPerBlock:
      *result = facts.threads_per_block;
      break;
    case tvm::runtime::kWarpSize:
      *result = facts.warp_size;
      break;
    case tvm::runtime::kMaxSharedMemoryPerBlock:
      *result = facts.shared_memory;
      break;
    case tvm::runtime::kDeviceName:
      *result = tvm::ffi::String(facts.name);
      break;
    case tvm::runtime::kMaxClockRate:
      if (facts.clock_khz > 0) *result = facts.clock_khz;
      break;
    case tvm::runtime::kMultiProcessorCount:
      if (facts.units > 0) *result = facts.units;
      break;
    case tvm::runtime::kTotalGlobalMemory:
      *result = static_cast<int64_t>(facts.memory);
      break;
    case tvm::runtime::kAvailableGlobalMemory:
      if (facts.available_memory >= 0) *result = facts.available_memory;
      break;
    case tvm::runtime::kDriverVersion:
      *result = tvm::ffi::String(facts.driver);
      break;
    default:  // attributes that a plugin does not know stay None, which TVM allows
      break;
  }
}

void* Devices::AllocDataSpace(DLDevice which, size_t bytes, size_t, DLDataType) {
  return device(which.device_id).allocate(bytes);
}

void Devices::FreeDataSpace(DLDevice which, void* data) {
  try {
    device(which.device_id).free(data);
  } catch (const std::exception&) {  // if the device was lost, the next launch reports it
  }
}

void* Devices::AllocWorkspace(DLDevice which, size_t bytes, DLDataType) {
  return device(which.device_id).allocate(bytes);
}

void Devices::FreeWorkspace(DLDevice which, void* data) { FreeDataSpace(which, data); }

void Devices::StreamSync(DLDevice which, TVMStreamHandle) { device(which.device_id).wait(); }

void Devices::CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                             size_t bytes, DLDevice from_device, DLDevice to_device, DLDataType,
                             TVMStreamHandle) {
  if (bytes == 0) return;
  bool from_here = from_device.device_type == type_, to_here = to_device.device_type == type_;
  if (from_here && to_here) {
    if (from_device.device_id != to_device.device_id) {
      TVM_FFI_THROW(RuntimeError) << title_ << ": no copies from device " << from_device.device_id
                                  << " to " << to_device.device_id << "; go through the host";
    }
    device(from_device.device_id).copy(from, from_offset, to, to_offset, bytes);
  } else if (from_here) {
    device(from_device.device_id)
        .read(from, from_offset, static_cast<char*>(to) + to_offset, bytes);
  } else {
    device(to_device.device_id)
        .write(static_cast<const char*>(from) + from_offset, to, to_offset, bytes);
  }
}

}  // namespace wherry::backends
