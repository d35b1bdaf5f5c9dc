// The interface between the engine and a model. Tests of the scheduler implement it with a fake.
#ifndef WHERRY_ENGINE_MODEL_MODEL_H_
#define WHERRY_ENGINE_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/metadata.h"
#include "sampling/candidates.h"
#include "support/error.h"

namespace wherry {

// The page table of one group of layers: sequence s owns the pages ids[indptr[s]..indptr[s + 1]].
struct PageTable {
  std::vector<int32_t> indptr;  // [r + 1]
  // [p] page ids; -1 for a page that the group's sliding window has passed.
  std::vector<int32_t> ids;
};

// The int32 arguments of `forward` for one step over n rows of r sequences; their meaning is in
// docs/design/compiled-library.md. n, r and m are at least 1.
struct Batch {
  std::vector<int32_t> tokens;        // [n]
  std::vector<int32_t> positions;     // [n]
  std::vector<int32_t> sequences;     // [n]
  std::vector<int32_t> adapters;      // [n]
  std::vector<int32_t> query_indptr;  // [r + 1]
  // [n] rows of the session's image features that replace the embeddings of tokens, -1 for none; or
  // empty if no row has any.
  std::vector<int32_t> image_rows;
  // [n, 3] and [n] for models that take them, else empty; see BatchShape.
  std::vector<int32_t> rope_positions, last_visible;
  std::vector<PageTable> pages;         // one page table for each group
  std::vector<int32_t> slots;           // [r], slots of recurrent state
  std::vector<int32_t> source_lengths;  // [r], tokens that the encoder has read
  std::vector<int32_t> logit_rows;      // [m]

  // [m] for kForward and kDraft, or empty. The scale at which a logit row's candidates are
  // computed, which then replace the row (sampling/candidates.h); 0 means that the result is the
  // row itself.
  std::vector<float> scales;

  // [m], or empty; requires `scales`. Describes how the device draws tokens as input of the next
  // step.
  std::vector<Choice> choices;

  // [n], or empty. If an element is not -1, row i's token is the one that the device drew for this
  // result of the previous step, and tokens[i] is ignored. See Session::chains.
  std::vector<int32_t> chosen_from;
};

// What the batches of a model have besides the arrays that all have.
struct BatchShape {
  explicit BatchShape(const Metadata& metadata)
      : groups(metadata.groups.size()),
        rope_positions(metadata.takes("rope_positions")),
        last_visible(metadata.takes("last_visible")) {}

  // Adds what a row of text has; delta: what M-RoPE adds to its position.
  void add_text(int64_t position, int64_t delta, Batch& batch) const {
    const auto place = static_cast<int32_t>(position + delta);
    if (rope_positions) batch.rope_positions.insert(batch.rope_positions.end(), 3, place);
    if (last_visible) batch.last_visible.push_back(static_cast<int32_t>(position));
  }

  size_t groups;  // page tables
  bool rope_positions, last_visible;
};

// A tile of an image, as the caller gives it.
struct ImageTile {
  int64_t n = 0;                        // patches
  std::vector<uint8_t> patches;         // [n, patch] levels, by channel, then row, then column
  std::vector<float> levels;            // [3, 256] value of each level of each channel
  std::vector<int32_t> positions;       // [n, taps] rows of the tower's table of positions
  std::vector<float> position_weights;  // [n, taps] their weights; empty if the tower takes none
  std::vector<int32_t> coordinates;     // [n, 2] row and column; empty if the tower takes none
};

// What a model's tower takes and gives.
struct TowerSpec {
  int64_t patch = 0;            // levels of a patch
  int64_t patches_per_row = 0;  // patches that give one row of image features
  int64_t taps = 1;             // rows of the table that make a position; 0: it takes no positions
  bool position_weights = false;  // whether it takes weights of these rows
  bool coordinates = false;       // whether it takes coordinates of patches
};

// The results of a step, float32 [rows, columns]; valid as long as the pointer of Session::row.
struct Rows {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<Candidates> candidates;  // [rows] candidates, or empty if the batch had no scales
};

// Counters of CUDA graph replay.
struct GraphCounts {
  uint64_t steps = 0;    // number of replayed steps
  std::string given_up;  // why graphs are off; empty if they are on or were never requested
};

// Upper bounds on a session's state and batches.
struct SessionLimits {
  std::vector<int64_t> pages;     // number of pages of the state, for each group
  std::vector<int64_t> page_ids;  // upper bound on a batch's page table entries (p), for each group
  int64_t rows = 0;               // upper bound on a batch's rows (n)
  int64_t logit_rows = 0;         // upper bound on a batch's result rows (m)
  int64_t sequences = 0;          // upper bound on a batch's sequences (r)
  int64_t slots = 0;              // number of slots of recurrent state
  int64_t image_rows = 0;         // number of rows of image features
};

// Owns the state of one engine (KV cache, recurrent slots) and runs the model on it. One step is in
// flight at a time, two with launch-ahead; different threads may launch and collect it. The device
// executes calls in their order.
class Session {
 public:
  virtual ~Session() = default;
  // Starts a step and the copy of its results. On an asynchronous device it returns before the step
  // is done; a CPU runs the step here.
  virtual void launch(const Batch& batch, Entry entry) = 0;
  // Computes the features of a tile and writes them to rows of the session's image features, from
  // `first` on. As launch(), it may return before that is done, but no collect() follows.
  virtual void see(const ImageTile& /*tile*/, int64_t /*first*/) {
    throw Error(WHERRY_INTERNAL, "this session computes no image features");
  }
  // Waits for the step and returns its rows: logits for kForward and kDraft, embeddings for kEmbed,
  // none for kEncode. After an exception in launch or collect, the session is ready for the next
  // launch.
  virtual Rows collect() = 0;
  // Returns row `i` of the collected results, [columns]; valid until the next launch or collect. If
  // the device returned candidates for the row, row() fetches the whole row now.
  virtual const float* row(int64_t i) = 0;
  // Whether row() can fetch a row by itself. Where no call can wait for the device (browsers), call
  // request_row(), return to the event loop, then call row(). request_row() returns false if the
  // row was requested before.
  virtual bool can_fetch_rows() const { return true; }
  virtual bool request_row(int64_t) { return false; }

  // Whether launch() returns while the device still computes.
  virtual bool asynchronous() const { return false; }
  // Whether launch-ahead works: a step can be launched before the previous one is collected, with
  // tokens that the device drew from that step's candidates. collect() then returns the older step
  // first.
  virtual bool chains() const { return false; }
  // Why launch-ahead was turned off, which costs speed only; empty if it was not.
  virtual std::string chains_given_up() const { return {}; }
  // Whether the device can draw tokens by sampling, besides taking the most likely token.
  virtual bool draws() const { return false; }
  // Discards the results of steps that were launched and not collected.
  virtual void discard() {}
  // Returns how many candidates the device can return for a row; 0 if batches must have no
  // `scales`.
  virtual int64_t max_candidates() const { return 0; }
  // Returns how many bytes of results were copied from the device so far.
  virtual uint64_t bytes_read() const { return 0; }
  virtual GraphCounts graphs() const { return {}; }

  virtual void copy_page(int group, int32_t from, int32_t to) = 0;
  virtual void copy_slot(int32_t from, int32_t to) = 0;
  virtual void clear_slot(int32_t slot) = 0;  // resets the slot to the state before the first token
  // Access one page of all layers of a group, as bytes that only a session of the same library can
  // read.
  virtual size_t page_bytes(int group) const = 0;
  virtual void read_page(int group, int32_t page, char* bytes) = 0;
  virtual void write_page(int group, int32_t page, const char* bytes) = 0;

  // Returns memory to the system, where the session can: the content of free pages ([groups] page
  // ids), which is undefined afterwards, and buffers that are kept for later steps. A step may be
  // in flight, which uses other pages. free_rows: first rows and numbers of rows of image features
  // whose content is undefined, too.
  virtual void trim(const std::vector<std::vector<int32_t>>& /*free_pages*/,
                    const std::vector<std::pair<int64_t, int64_t>>& /*free_rows*/) {}
};

// A loaded model: immutable, and shared by engines and threads.
class Model {
 public:
  virtual ~Model() = default;
  virtual const Metadata& metadata() const = 0;
  // Returns a hash of weights and code: models with equal values compute the same bytes for a page.
  virtual uint64_t identity() const = 0;
  // Describes the model's tower, which the first call opens. Throws WHERRY_INVALID_ARGUMENT if the
  // model was loaded without one.
  virtual TowerSpec tower() const {
    throw Error(WHERRY_INVALID_ARGUMENT, concat(metadata().name, " takes no images"));
  }
  virtual std::unique_ptr<Session> open(const SessionLimits& limits) const = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_MODEL_H_
