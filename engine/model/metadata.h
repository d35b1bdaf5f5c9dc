// What a compiled library says about itself (ARCHITECTURE.md, "What a compiled library is").
#ifndef WHERRY_ENGINE_MODEL_METADATA_H_
#define WHERRY_ENGINE_MODEL_METADATA_H_

#include <tvm/ffi/dtype.h>

#include <cstdint>
#include <string>
#include <vector>

namespace wherry {

// First 16 hex digits of the SHA-256 of wherry.artifact.INTERFACE: argument names, order and
// dtypes of `forward`. A test compares the two.
extern const char* const kInterface;

// One kind of state: `layers` tensors of shape [pages, *page_shape].
struct StateSpec {
  std::string kind;  // "paged_kv"
  int64_t layers = 0;
  std::vector<int64_t> page_shape;
  DLDataType dtype{};
};

struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  DLDataType dtype{};
  std::vector<std::string> from;  // names in tensor-cache.json
  std::string pack;               // VM function, or empty: the stored tensor as it is
  int64_t index = 0;              // element of the result if `pack` returns a tuple
};

struct Metadata {
  std::string json;  // as the library gave it
  std::string name;
  int64_t vocab_size = 0;
  int64_t context = 0;    // tokens
  int64_t page_size = 0;  // tokens
  // What the library's memory is planned for; an engine may use less, not more.
  int64_t max_batch = 4096;         // sequences in one step
  int64_t prefill_chunk = 1 << 20;  // rows of one step
  std::vector<StateSpec> state;
  std::vector<ParamSpec> params;
};

// Throws WHERRY_INCOMPATIBLE with all that is wrong.
Metadata parse_metadata(const std::string& json);

// Reads "float16"; adds a problem that starts with `where` if there is no such dtype.
class Problems;
DLDataType parse_dtype(const std::string& text, const std::string& where, Problems& problems);

// "float16 [4, 32]"
std::string describe(DLDataType dtype, const std::vector<int64_t>& shape);

// Bytes of a compact tensor; sub-byte dtypes are packed.
int64_t tensor_bytes(DLDataType dtype, const std::vector<int64_t>& shape);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_METADATA_H_
