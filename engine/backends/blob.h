// What a compiled library holds for a device: its kernels, and how each is called.
#ifndef WHERRY_ENGINE_BACKENDS_BLOB_H_
#define WHERRY_ENGINE_BACKENDS_BLOB_H_

#include <dlpack/dlpack.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tvm/ffi/function.h"

namespace wherry::backends {

// Reads what TVM's serializer wrote: numbers little-endian, a string as u64 length and bytes.
class BlobReader {
 public:
  // what: names the blob in errors, "the OpenCL part of the library". The blob must outlive this.
  BlobReader(const std::string& blob, std::string what);

  // All throw a ValueError of tvm-ffi if the blob ends before.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text();

 private:
  const char* take(uint64_t bytes);

  const char* at_;
  const char* end_;
  std::string what_;
};

// How a kernel is called: arguments, then the extents of its axes.
struct KernelCall {
  std::vector<DLDataType> arguments;
  std::vector<bool> written;    // of the tensors among the arguments, in order; empty: not told
  std::vector<int> axes;        // of the extents: 0-2 blockIdx, 3-5 threadIdx
  std::vector<int32_t> extras;  // further numbers, which depend on the format

  // Extents of a launch, 1 for an axis that the kernel has not: grid x, y, z, then block x, y, z.
  // Throws a ValueError if the number of values is not that of arguments and axes.
  std::array<int64_t, 6> extents(const std::string& name, tvm::ffi::PackedArgs args) const;
};

// u64 count and types (u8 code, u8 bits, u16 lanes), u64 count and tags, u64 count and i32 extras.
// Throws a ValueError for a tag that is neither an axis nor "paramWriteAccess:[0,1]".
KernelCall read_call(BlobReader& reader);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_BLOB_H_
