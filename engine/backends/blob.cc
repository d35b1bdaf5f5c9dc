#include "backends/blob.h"

#include <tvm/ffi/error.h>

#include <limits>
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
  std::array<int64_t, 6> extents{1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < axes.size(); ++i) {
    extents[static_cast<size_t>(axes[i])] = args[static_cast<int>(count + i)].cast<int64_t>();
  }
  return extents;
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

uint32_t word_of(const std::string& kernel, DLDataType type, tvm::ffi::AnyView value) {
  uint32_t word = 0;
  if (type.code == kDLFloat && type.bits == 32) {
    auto number = static_cast<float>(value.cast<double>());
    std::memcpy(&word, &number, sizeof word);
    return word;
  }
  auto number = value.cast<int64_t>();
  const bool is_signed = type.code == kDLInt;
  const int64_t least = is_signed ? std::numeric_limits<int32_t>::min() : 0;
  const int64_t most = is_signed ? int64_t{std::numeric_limits<int32_t>::max()}
                                 : int64_t{std::numeric_limits<uint32_t>::max()};
  if (number < least || number > most) {
    TVM_FFI_THROW(ValueError) << "kernel " << kernel << ": " << number
                              << " does not fit the 32 bits of its argument";
  }
  return static_cast<uint32_t>(number);
}

std::array<uint32_t, 3> grid_of(const std::string& kernel, const std::array<int64_t, 6>& extents,
                                const std::array<uint32_t, 3>& most) {
  const int64_t turns = (extents[0] - 1) / most[0] + 1;
  if (turns > most[2] || extents[1] > most[1] || extents[2] != 1) {
    TVM_FFI_THROW(ValueError) << "kernel " << kernel << " wants a grid of " << extents[0] << " x "
                              << extents[1] << " x " << extents[2] << "; the device allows "
                              << most[1] << " along the second axis, and none along the third. "
                              << "Take a smaller --prefill-chunk";
  }
  const int64_t along_x = (extents[0] + turns - 1) / turns;
  return {static_cast<uint32_t>(along_x), static_cast<uint32_t>(extents[1]),
          static_cast<uint32_t>(turns)};
}

}  // namespace wherry::backends
