#include "backends/blob.h"

#include <tvm/ffi/error.h>

#include <utility>

namespace wherry::backends {

namespace {

constexpr char kWritten[] = "paramWriteAccess:";

int axis_of(const std::string& tag) {
  for (int i = 0; i < 6; ++i) {
    std::string name = i < 3 ? "blockIdx." : "threadIdx.";
    if (tag == name + "xyz"[i % 3]) return i;
  }
  TVM_FFI_THROW(ValueError) << "a kernel wants launch parameter \"" << tag
                            << "\", which this device has not";
  throw;
}

}  // namespace

BlobReader::BlobReader(const std::string& blob, std::string what)
    : at_(blob.data()), end_(blob.data() + blob.size()), what_(std::move(what)) {}

std::string BlobReader::text() {
  auto size = number<uint64_t>();
  const char* data = take(size);
  return std::string(data, size);
}

const char* BlobReader::take(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(end_ - at_)) {
    TVM_FFI_THROW(ValueError) << what_ << " is cut short";
  }
  const char* data = at_;
  at_ += bytes;
  return data;
}

std::array<int64_t, 6> KernelCall::extents(const std::string& name,
                                           tvm::ffi::PackedArgs args) const {
  size_t count = arguments.size();
  if (static_cast<size_t>(args.size()) != count + axes.size()) {
    TVM_FFI_THROW(ValueError) << "kernel " << name << " takes " << count << " arguments and "
                              << axes.size() << " extents; " << args.size() << " values were given";
  }
  std::array<int64_t, 6> found{1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < axes.size(); ++i) {
    found[static_cast<size_t>(axes[i])] = args[static_cast<int>(count + i)].cast<int64_t>();
  }
  return found;
}

KernelCall read_call(BlobReader& reader) {
  KernelCall call;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    DLDataType type;
    type.code = reader.number<uint8_t>();
    type.bits = reader.number<uint8_t>();
    type.lanes = reader.number<uint16_t>();
    call.arguments.push_back(type);
  }
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string tag = reader.text();
    if (tag.rfind(kWritten, 0) == 0) {
      for (char c : tag.substr(sizeof kWritten - 1)) {
        if (c == '0' || c == '1') call.written.push_back(c == '1');
      }
    } else {
      call.axes.push_back(axis_of(tag));
    }
  }
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    call.extras.push_back(reader.number<int32_t>());
  }
  return call;
}

}  // namespace wherry::backends
