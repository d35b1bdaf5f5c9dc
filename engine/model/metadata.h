// The metadata of a compiled library, which it stores as JSON (docs/design/compiled-library.md).
#ifndef WHERRY_ENGINE_MODEL_METADATA_H_
#define WHERRY_ENGINE_MODEL_METADATA_H_

#include <tvm/ffi/dtype.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace wherry {

// Hash of the interface: the first 16 hex digits of the SHA-256 of
// wherry.artifact.manifest.INTERFACE, i.e. argument names, order and dtypes of `forward`. A test
// compares the two.
extern const char* const kInterface;

// The entry points of a library: VM functions that take the same arguments.
enum class Entry {
  kForward,  // runs "forward" -> logits of the logit rows [m, vocab]
  kEmbed,    // runs "embed" -> embeddings of the logit rows [m, d]
  kEncode,   // runs "encode": reads the source of an encoder-decoder model into its cross groups
  kSee,      // runs "see" of the tower's library, see Session::see
  // runs "draft" -> logits [m, vocab] of the block of multi-token prediction, for the tokens after
  // the rows; see DraftBlock
  kDraft,
};
constexpr int kStepKinds = 4;  // the entries up to kSee: the scheduler plans steps of each

// A group of layers that share one page table for each sequence.
struct GroupSpec {
  // Tokens that a row attends to with a sliding window, including its own; 0 if all.
  int64_t window = 0;
  bool cross = false;  // true for cross-attention: the pages hold the encoder's tokens
};

// Describes one kind of state, `layers` tensors of it. Shapes: paged_kv: [pages of the group,
// *shape]; recurrent: [slots, *shape].
struct StateSpec {
  bool recurrent = false;
  size_t group = 0;  // for paged_kv: index into Metadata::groups
  int64_t layers = 0;
  std::vector<int64_t> shape;
  DLDataType dtype{};
};

// Snapshots of a recurrent state take at most 1 / kSnapshotShare of the bytes of the KV cache.
constexpr int64_t kSnapshotShare = 4;
// Sequences with a recurrent state that verify draft tokens in one step always find a slot for the
// state before them, up to this number.
constexpr int64_t kSpareSlots = 4;

struct ParamSpec {
  std::string name;
  std::vector<int64_t> shape;
  DLDataType dtype{};
  std::vector<std::string> from;  // names of stored tensors in tensor-cache.json
  std::string pack;   // VM function that packs them; if empty, the parameter is the stored tensor
  int64_t index = 0;  // element to take if `pack` returns a tuple
};

struct Metadata {
  std::string json;  // the text that parse_metadata parsed
  std::string name;
  int64_t vocab_size = 0;
  int64_t context = 0;    // tokens
  int64_t page_size = 0;  // tokens
  // Upper bounds on batches that the library's memory plan allows.
  int64_t max_batch = 4096;         // upper bound on sequences in one step
  int64_t prefill_chunk = 1 << 20;  // upper bound on rows of one step
  int64_t logit_rows = 4096;        // upper bound on rows of one step whose logits are read
  int64_t adapters = 0;
  // Tokens that the entry `candidates` returns for a row; 0 if there is no such entry.
  int64_t candidates = 0;
  double candidates_error = 0;  // relative error of the sums of the entry `candidates`
  // The entries' arguments before state and parameters, in order. Each names a field of Batch;
  // "pages.i" stands for both arrays of group i. "image_features", the last one, is a tensor of the
  // session.
  std::vector<std::string> inputs;
  std::vector<Entry> entries;
  // Elements of a row of image features; 0 if the model takes no images.
  int64_t image_features = 0;
  int64_t patch = 0;            // of a tower: elements of a patch
  int64_t patches_per_row = 0;  // of a tower: patches that give one row of image features
  int64_t position_taps = 1;    // of a tower: rows of its table that make a position
  bool bidirectional = false;   // bidirectional attention: one step must compute a whole sequence
  std::vector<GroupSpec> groups;
  std::vector<StateSpec> state;
  std::vector<ParamSpec> params;

  bool has(Entry entry) const {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  }
  bool takes(const std::string& input) const {
    return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
  }
  bool recurrent() const {
    return std::any_of(state.begin(), state.end(), [](const auto& s) { return s.recurrent; });
  }
};

const char* name_of(Entry entry);

// Parses a library's metadata. Throws WHERRY_INCOMPATIBLE with every problem that it finds.
Metadata parse_metadata(const std::string& json);

// Parses the metadata of a tower's library, whose entry is "see". Throws as parse_metadata does.
Metadata parse_tower_metadata(const std::string& json);

// Parses a dtype such as "float16"; adds a problem that starts with `where` if there is no such
// dtype.
class Problems;
DLDataType parse_dtype(const std::string& text, const std::string& where, Problems& problems);

// Returns dtype and shape as text, e.g. "float16 [4, 32]".
std::string describe(DLDataType dtype, const std::vector<int64_t>& shape);

// Returns the bytes of a compact tensor; sub-byte dtypes are packed.
int64_t tensor_bytes(DLDataType dtype, const std::vector<int64_t>& shape);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_METADATA_H_
