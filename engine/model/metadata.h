// What a compiled library says about itself (docs/design/compiled-library.md).
#ifndef WHERRY_ENGINE_MODEL_METADATA_H_
#define WHERRY_ENGINE_MODEL_METADATA_H_

#include <tvm/ffi/dtype.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace wherry {

// First 16 hex digits of the SHA-256 of wherry.artifact.INTERFACE: argument names, order and
// dtypes of `forward`. A test compares the two.
extern const char* const kInterface;

// What a library computes; each is a VM function of the same arguments.
enum class Entry {
  kForward,  // "forward" -> logits of the logit rows [m, vocab]
  kEmbed,    // "embed" -> embeddings of the logit rows [m, d]
  kEncode,   // "encode": reads the source of an encoder-decoder model into its cross groups
};

// Layers whose sequences own the same pages.
struct GroupSpec {
  int64_t window = 0;  // a row sees so many tokens, its own included; 0: all
  bool cross = false;  // the pages hold the encoder's tokens, not the sequence's own
};

// One kind of state: `layers` tensors. paged_kv: [pages of the group, *shape]; recurrent:
// [slots, *shape].
struct StateSpec {
  bool recurrent = false;
  size_t group = 0;  // of paged_kv
  int64_t layers = 0;
  std::vector<int64_t> shape;
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
  int64_t logit_rows = 4096;        // rows of one step whose logits are wanted
  int64_t adapters = 0;
  int64_t candidates = 0;       // that the entry of this name gives of a row; 0: there is none
  double candidates_error = 0;  // relative, of its sums
  // Arguments of the entries before state and parameters, in order: fields of Batch; "pages.i" is
  // the two arrays of group i.
  std::vector<std::string> inputs;
  std::vector<Entry> entries;
  bool whole = false;  // a sequence must be computed in one step: its rows see each other
  std::vector<GroupSpec> groups;
  std::vector<StateSpec> state;
  std::vector<ParamSpec> params;

  bool has(Entry entry) const {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  }
  bool recurrent() const {
    return std::any_of(state.begin(), state.end(), [](const auto& s) { return s.recurrent; });
  }
};

const char* name_of(Entry entry);

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
