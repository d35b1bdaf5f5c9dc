// What the engine needs of a model, so that scheduling is tested with a fake one.
#ifndef WHERRY_ENGINE_MODEL_MODEL_H_
#define WHERRY_ENGINE_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "model/metadata.h"

namespace wherry {

// The int32 arguments of `forward` for one step over n rows of r sequences; meaning and order as
// in ARCHITECTURE.md. n, r and m are at least 1.
struct Batch {
  std::vector<int32_t> tokens;        // [n]
  std::vector<int32_t> positions;     // [n]
  std::vector<int32_t> sequences;     // [n]
  std::vector<int32_t> query_indptr;  // [r + 1]
  std::vector<int32_t> page_indptr;   // [r + 1]
  std::vector<int32_t> page_ids;      // [p]
  std::vector<int32_t> logit_rows;    // [m]
};

// float32 [rows, vocab] in host memory, row-major; valid until the session's next launch.
struct Logits {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t vocab = 0;
};

// How large a session's batches get.
struct SessionLimits {
  int64_t pages = 0;      // of the state
  int64_t rows = 0;       // n
  int64_t sequences = 0;  // r
  int64_t page_ids = 0;   // p
};

// One engine's state (its cache) and the means to run the model on it. One step at a time;
// launch and collect may be called from different threads.
class Session {
 public:
  virtual ~Session() = default;
  // Starts a step. An asynchronous device returns before it is done; a CPU runs it here.
  virtual void launch(const Batch& batch) = 0;
  // Waits for the step. After an exception in either, the session takes the next launch.
  virtual Logits collect() = 0;
};

// Immutable: shared by engines and threads.
class Model {
 public:
  virtual ~Model() = default;
  virtual const Metadata& metadata() const = 0;
  virtual std::unique_ptr<Session> open(const SessionLimits& limits) const = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_MODEL_H_
