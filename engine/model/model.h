// What the engine needs of a model, so that scheduling is tested with a fake one.
#ifndef WHERRY_ENGINE_MODEL_MODEL_H_
#define WHERRY_ENGINE_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/candidates.h"
#include "model/metadata.h"

namespace wherry {

// What sequence s owns in one group of layers: pages ids[indptr[s]..indptr[s + 1]].
struct PageTable {
  std::vector<int32_t> indptr;  // [r + 1]
  std::vector<int32_t> ids;     // [p]; -1 for a page behind the group's window
};

// The int32 arguments of `forward` for one step over n rows of r sequences; meaning as in
// docs/design/compiled-library.md. n, r and m are at least 1.
struct Batch {
  std::vector<int32_t> tokens;          // [n]
  std::vector<int32_t> positions;       // [n]
  std::vector<int32_t> sequences;       // [n]
  std::vector<int32_t> adapters;        // [n]
  std::vector<int32_t> query_indptr;    // [r + 1]
  std::vector<PageTable> pages;         // one for each group
  std::vector<int32_t> slots;           // [r], of recurrent state
  std::vector<int32_t> source_lengths;  // [r], tokens that the encoder read
  std::vector<int32_t> logit_rows;      // [m]

  // [m] for kForward, or empty: of each logit row the scale for whose sum its candidates are wanted
  // in place of the row (candidates.h); 0: of this one the row is.
  std::vector<float> scales;

  // [m], or empty: beside `scales`, how tokens are drawn that rows of the next step may have.
  std::vector<Choice> choices;

  // [n], or empty: of each row the result of the step before whose token it has, the one that the
  // device drew, in place of tokens[i]; -1: none. See Session::chains.
  std::vector<int32_t> chosen_from;
};

// Results of a step, float32 [rows, columns]; valid as long as Session::row's.
struct Rows {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<Candidates> candidates;  // [rows], or empty: they were not asked for
};

// What came of launching steps as one command each.
struct GraphCounts {
  uint64_t steps = 0;    // that were
  std::string given_up;  // why none is from there on; empty: nothing has gone wrong
};

// How large a session's batches get.
struct SessionLimits {
  std::vector<int64_t> pages;     // of the state, for each group
  std::vector<int64_t> page_ids;  // p, for each group
  int64_t rows = 0;               // n
  int64_t logit_rows = 0;         // m
  int64_t sequences = 0;          // r
  int64_t slots = 0;              // of recurrent state
};

// One engine's state (its cache) and the means to run the model on it. One step at a time, or two
// where it chains; a step may be launched and collected by different threads. Whatever is called is
// done in the order of the calls.
class Session {
 public:
  virtual ~Session() = default;
  // Starts a step and asks for its results. An asynchronous device returns before it is done; a
  // CPU runs it here.
  virtual void launch(const Batch& batch, Entry entry) = 0;
  // Waits for the step. The rows of kForward are logits, of kEmbed embeddings; kEncode has none.
  // After an exception in either, the session takes the next launch.
  virtual Rows collect() = 0;
  // Row `i` of what was collected, [columns]; valid until the next launch or collect. Where
  // candidates came in its place, it is fetched now.
  virtual const float* row(int64_t i) = 0;
  // Whether row() can bring a row that nobody asked for. Where no call can wait for the device
  // (browsers), ask() for it, wait outside, and call row() then. ask: false if it was asked for.
  virtual bool brings_rows() const { return true; }
  virtual bool ask(int64_t) { return false; }

  // Whether launch() returns while the device computes.
  virtual bool asynchronous() const { return false; }
  // Whether a step may be launched while the one before is not collected, with tokens that the
  // device drew from that one's results: those with candidates. collect() gives the older first.
  virtual bool chains() const { return false; }
  // Why it is not any more, which costs speed alone; empty: nothing has gone wrong.
  virtual std::string chains_given_up() const { return {}; }
  // Whether they may be others than the most likely tokens.
  virtual bool draws() const { return false; }
  // Gives up the results of what was launched and not collected.
  virtual void forget() {}
  // How many candidates of a row a device can bring; 0: no `scales` may be given.
  virtual int64_t most_candidates() const { return 0; }
  // Bytes of results that were brought from a device so far.
  virtual uint64_t bytes_read() const { return 0; }
  virtual GraphCounts graphs() const { return {}; }

  virtual void copy_page(int group, int32_t from, int32_t to) = 0;
  virtual void copy_slot(int32_t from, int32_t to) = 0;
  virtual void clear_slot(int32_t slot) = 0;  // as no token had come
  // A page of every layer of a group as bytes, which only a session of the same library reads.
  virtual size_t page_bytes(int group) const = 0;
  virtual void read_page(int group, int32_t page, char* bytes) = 0;
  virtual void write_page(int group, int32_t page, const char* bytes) = 0;
};

// Immutable: shared by engines and threads.
class Model {
 public:
  virtual ~Model() = default;
  virtual const Metadata& metadata() const = 0;
  // Names the weights and the code: equal for models whose pages are the same bytes.
  virtual uint64_t identity() const = 0;
  virtual std::unique_ptr<Session> open(const SessionLimits& limits) const = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_MODEL_H_
