// A model for tests. Its logits are a function of the sequence's tokens so far, which it reads
// through the page tables from state that earlier steps wrote. A wrong page, position, index, slot
// or chunk gives other tokens than fake_output(), or an exception.
#ifndef WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
#define WHERRY_ENGINE_TESTING_FAKE_MODEL_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "model/model.h"
#include "wherry.h"

namespace wherry {

struct FakeOptions {
  int64_t vocab = 64;
  int64_t context = 64;
  int64_t page_size = 4;
  int64_t logit_rows = 4096;
  int64_t window = 0;         // sliding window of a second group of layers; 0: no such group
  bool window_alone = false;  // all groups have a window
  bool recurrent = false;     // has recurrent layers
  bool encoder = false;       // has an encoder, with a cross group
  bool embeds = false;        // has the entry `embed`, too
  bool whole = false;         // has only `embed`, of a whole sequence in one step
  uint64_t seed = 0;          // not 0: another model with the same vocabulary
  bool asynchronous = false;  // computes as late as allowed
  bool chains = false;        // supports launch-ahead; requires `candidates`
  bool draws = false;         // the device can sample tokens, too
  double wrong_choices = 0;   // share of device tokens that differ from sampling's
  int64_t candidates = 0;     // that the "device" returns for a row; 0: it returns rows
  double error = 0;           // relative error of their sums
  bool asks = false;          // whole rows must be requested before row()
  double sharpness = 1;       // larger: more peaked distributions
  double agrees = 1;  // share of texts after which both models have the same most likely token
};

class FakeModel : public Model {
 public:
  explicit FakeModel(FakeOptions options = {});
  const Metadata& metadata() const override { return metadata_; }
  uint64_t identity() const override { return options.seed; }
  std::unique_ptr<Session> open(const SessionLimits& limits) const override;

  const FakeOptions options;
  // Called with each batch in launch; may throw, or block.
  std::function<void(const Batch&)> on_launch;
  // Called with the logits of each row and the number of tokens they follow.
  std::function<void(float* row, int64_t tokens)> on_logits;

 private:
  Metadata metadata_;
};

// The logits after `tokens` (and a source, of models that read one), [vocab].
std::vector<float> fake_logits(const FakeOptions& options, const std::vector<int32_t>& tokens,
                               const std::vector<int32_t>& source = {});

constexpr int64_t kFakeEmbedding = 3;  // elements
std::vector<float> fake_embedding(const FakeOptions& options, const std::vector<int32_t>& tokens);

// The expected output of a request: samples fake_logits token by token with StandardSampler,
// without an engine, until WHERRY_STOP or WHERRY_LENGTH. Takes ownership of the mask, if there is
// one.
std::vector<int32_t> fake_output(const FakeOptions& options, const std::vector<int32_t>& prompt,
                                 const wherry_params& params, int64_t context);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
