// A model for tests: its logits are a function of the sequence's tokens so far, read back through
// the page tables from a state that earlier steps wrote. A wrong page, position, index, slot or
// chunk gives other tokens than fake_output(), or an exception.
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
  int64_t window = 0;         // of a second group of layers; 0: there is none
  bool window_alone = false;  // there is no group without one
  bool recurrent = false;     // layers with a state of their own
  bool encoder = false;       // reads a source; its pages are a group of their own
  bool embeds = false;        // has embeddings, too
  bool whole = false;         // has embeddings alone, of a sequence in one step
  uint64_t seed = 0;          // of another model with the same vocabulary
  bool asynchronous = false;  // computes as late as it may
  bool chains = false;        // takes a step before the last one is collected; with `candidates`
  bool draws = false;         // and other tokens than the most likely ones
  double wrong_choices = 0;   // share of the tokens that it then chooses and sampling does not
  int64_t candidates = 0;     // that a "device" brings of a row; 0: rows are here
  double error = 0;           // relative, of their sums
  bool asks = false;          // whole rows come only if they were asked for
  double sharpness = 1;       // of the distributions
  double agrees = 1;  // share of texts after which that model's most likely token is this one's
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

// What a request must give: fake_logits and StandardSampler, one token at a time, without an
// engine. Ends by itself with WHERRY_STOP or WHERRY_LENGTH. Takes over the mask, if there is one.
std::vector<int32_t> fake_output(const FakeOptions& options, const std::vector<int32_t>& prompt,
                                 const wherry_params& params, int64_t context);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
