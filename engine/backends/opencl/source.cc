#include "backends/opencl/source.h"

#include <tvm/ffi/error.h>

namespace wherry::opencl {

namespace {

// The line with which each kernel's part of the source starts. A part repeats the prototypes of all
// kernels, which would make the source quadratic in size.
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

// Parses a blob of TVM 0.27: string format, u64 count, count * (string key, string name, call),
// string source.
std::map<std::string, KernelInfo> read_kernels(const std::string& blob) {
  backends::BlobReader reader(blob, "the OpenCL part of the library");
  std::string format = reader.text();
  if (format != "cl") {
    TVM_FFI_THROW(ValueError) << "the OpenCL part of the library has format \"" << format
                              << "\"; \"cl\" is supported";
  }
  std::map<std::string, KernelInfo> kernels;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string key = reader.text();
    reader.text();  // skips the name, which the blob repeats
    kernels[key].call = backends::read_call(reader);
  }
  std::string code = reader.text();
  for (size_t at = code.find(kMarker); at != std::string::npos;) {
    size_t line_end = code.find('\n', at);
    size_t next = code.find(kMarker, line_end);
    size_t begin = at + sizeof kMarker - 1;
    auto match = kernels.find(code.substr(begin, line_end - begin));
    if (match != kernels.end()) {
      size_t length = next == std::string::npos ? next : next - line_end;
      match->second.source = without_prototypes(code.substr(line_end, length));
    }
    at = next;
  }
  for (const auto& [name, info] : kernels) {
    if (info.source.empty()) TVM_FFI_THROW(ValueError) << "kernel " << name << " has no source";
  }
  return kernels;
}

}  // namespace wherry::opencl
