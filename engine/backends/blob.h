// Parses the device part of a compiled library: its kernels and their calling conventions.
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

// Reads the binary format of TVM's serializer: little-endian numbers; a string is a u64 length and
// bytes.
class BlobReader {
 public:
  // what: names the blob in errors, e.g. "the OpenCL part of the library". The blob must outlive
  // the reader.
  BlobReader(const std::string& blob, std::string what);

  // All reading functions throw a ValueError of tvm-ffi if the blob is truncated.
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

// The calling convention of a kernel: its arguments, then the extents of its axes.
struct KernelCall {
  std::vector<DLDataType> arguments;
  // Whether the kernel writes each of its tensor arguments, in order; empty if unknown.
  std::vector<bool> written;
  std::vector<int> axes;        // the axis of each extent: 0-2 are blockIdx, 3-5 are threadIdx
  std::vector<int32_t> extras;  // further numbers, whose meaning depends on the format

  // Returns the extents of a launch: grid x, y, z, then block x, y, z; 1 for an axis that the
  // kernel lacks. Throws a ValueError if the number of values differs from the number of arguments
  // and axes.
  std::array<int64_t, 6> extents(const std::string& name, tvm::ffi::PackedArgs args) const;
};

// Reads a calling convention: u64 count and types (u8 code, u8 bits, u16 lanes), u64 count and
// tags, u64 count and i32 extras. Throws a ValueError for a tag that is neither an axis nor
// "paramWriteAccess:[0,1]".
KernelCall read_call(BlobReader& reader);

// Converts a number to a 32-bit word of a kernel's uniform. Throws a ValueError if it does not fit.
uint32_t word_of(const std::string& kernel, DLDataType type, tvm::ffi::AnyView value);

// Returns the grid of a launch. TVM's kernels split a long first axis into x and z, where z counts
// multiples of x's limit. extents: of `KernelCall::extents`, positive. most: the device's limits on
// workgroups along x, y and z. Throws a ValueError if the grid exceeds them.
std::array<uint32_t, 3> grid_of(const std::string& kernel, const std::array<int64_t, 6>& extents,
                                const std::array<uint32_t, 3>& most);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_BLOB_H_
