#include "backends/metal/kernels.h"

#include <tvm/ffi/error.h>

namespace wherry::metal {

// Parses a blob of TVM 0.27: string format, u64 count, count * (string key, string name, call), u64
// count, count * (string key, string source).
std::map<std::string, KernelInfo> read_kernels(const std::string& blob) {
  backends::BlobReader reader(blob, "the Metal part of the library");
  std::string format = reader.text();
  if (format != "metal") {
    TVM_FFI_THROW(ValueError) << "the Metal part of the library has format \"" << format
                              << "\"; \"metal\" is supported";
  }
  std::map<std::string, KernelInfo> kernels;
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    std::string key = reader.text();
    reader.text();  // skips the name, which the blob repeats
    kernels[key].call = backends::read_call(reader);
  }
  for (auto n = reader.number<uint64_t>(); n > 0; --n) {
    auto match = kernels.find(reader.text());
    std::string source = reader.text();
    if (match != kernels.end()) match->second.source = source;
  }
  for (const auto& [name, info] : kernels) {
    if (info.source.empty()) TVM_FFI_THROW(ValueError) << "kernel " << name << " has no source";
  }
  return kernels;
}

}  // namespace wherry::metal
