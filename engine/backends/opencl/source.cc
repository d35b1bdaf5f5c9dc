#include "backends/opencl/source.h"

#include <tvm/ffi/error.h>

#include <cstring>

namespace wherry::opencl {

namespace {

// A blob of TVM 0.27: string format, u64 count, count * (string key, string name, u64 count and
// types (u8 code, u8 bits, u16 lanes), u64 count and tags (string), u64 count and i32 extras),
// string source. A string is u64 length and bytes; little-endian throughout.
class Reader {
 public:
  explicit Reader(const std::string& blob) : at_(blob.data()), end_(blob.data() + blob.size()) {}

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    auto size = number<uint64_t>();
    const char* data = take(size);
    return std::string(data, size);
  }

 private:
  const char* take(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(end_ - at_)) {
      TVM_FFI_THROW(ValueError) << "the OpenCL part of the library is cut short";
    }
    const char* data = at_;
    at_ += bytes;
    return data;
  }

  const char* at_;
  const char* end_;
};

int axis_of(const std::string& tag) {
  for (int i = 0; i < 6; ++i) {
    std::string name = i < 3 ? "blockIdx." : "threadIdx.";
    if (tag == name + "xyz"[i % 3]) return i;
  }
  TVM_FFI_THROW(ValueError) << "a kernel wants launch parameter \"" << tag
                            << "\", which OpenCL has not";
  throw;
}

KernelInfo read_info(Reader& reader) {
  KernelInfo info;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    DLDataType type;
    type.code = reader.number<uint8_t>();
    type.bits = reader.number<uint8_t>();
    type.lanes = reader.number<uint16_t>();
    info.arguments.push_back(type);
  }
  for (auto n = reader.number<uint64_t>(); n > 0; --n) info.axes.push_back(axis_of(reader.text()));
  for (auto n = reader.number<uint64_t>(); n > 0; --n) reader.number<int32_t>();
  return info;
}

// Each kernel's part begins with this line and repeats the prototypes of all kernels: together
// they are of quadratic size.
constexpr char kMarker[] = "// Function: ";

std::string without_prototypes(const std::string& part) {
  std::string kept;
  for (size_t at = 0; at < part.size();) {
    size_t end = part.find('\n', at);
    end = end == std::string::npos ? part.size() : end + 1;
    std::string line = part.substr(at, end - at);
    size_t last = line.find_last_not_of(" \n\r");
    bool prototype =
        line.rfind("__kernel", 0) == 0 && last != std::string::npos && line[last] == ';';
    if (!prototype) kept += line;
    at = end;
  }
  return kept;
}

}  // namespace

std::map<std::string, KernelInfo> read_kernels(const std::string& blob) {
  Reader reader(blob);
  std::string format = reader.text();
  if (format != "cl") {
    TVM_FFI_THROW(ValueError) << "the OpenCL part of the library has format \"" << format
                              << "\"; \"cl\" is supported";
  }
  std::map<std::string, KernelInfo> kernels;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string key = reader.text();
    reader.text();  // the name again
    kernels[key] = read_info(reader);
  }
  std::string code = reader.text();
  for (size_t at = code.find(kMarker); at != std::string::npos;) {
    size_t line_end = code.find('\n', at);
    size_t next = code.find(kMarker, line_end);
    size_t begin = at + sizeof kMarker - 1;
    auto found = kernels.find(code.substr(begin, line_end - begin));
    if (found != kernels.end()) {
      size_t length = next == std::string::npos ? next : next - line_end;
      found->second.source = without_prototypes(code.substr(line_end, length));
    }
    at = next;
  }
  for (const auto& [name, info] : kernels) {
    if (info.source.empty()) TVM_FFI_THROW(ValueError) << "kernel " << name << " has no source";
  }
  return kernels;
}

}  // namespace wherry::opencl
