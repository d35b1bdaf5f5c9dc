// A model for tests. Its logits are a function of the sequence's tokens so far, which it reads
// through the page tables from state that earlier steps wrote. A wrong page, position, index, slot
// or chunk gives other tokens than fake_output(), or an exception.
#ifndef WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
#define WHERRY_ENGINE_TESTING_FAKE_MODEL_H_

#include <atomic>
#include <chrono>
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
  int64_t window = 0;          // sliding window of a second group of layers; 0 for no such group
  bool window_alone = false;   // true if all groups have a window
  bool recurrent = false;      // true if the model has recurrent layers
  bool block = false;          // true if the model has a block of multi-token prediction
  bool encoder = false;        // true if the model has an encoder, with a cross group
  bool embeds = false;         // true if the model also has the entry `embed`
  bool images = false;         // true if the model takes images
  bool bidirectional = false;  // the model only has `embed`, of a whole sequence in one step
  uint64_t seed = 0;           // other values give another model with the same vocabulary
  bool asynchronous = false;   // true if the fake device computes as late as allowed
  bool chains = false;         // whether launch-ahead is supported; requires `candidates`
  bool draws = false;          // whether the fake device can also sample tokens
  double wrong_choices = 0;    // share of device tokens that differ from sampling's
  // Candidates that the fake device returns for a row; 0 if it returns rows.
  int64_t candidates = 0;
  double error = 0;      // relative error of the candidates' sums
  bool asks = false;     // true if whole rows must be requested before row()
  double sharpness = 1;  // larger values give more peaked distributions
  // Share of texts after which the draft model, or the block, has the same most likely token.
  double agrees = 1;
};

class FakeModel : public Model {
 public:
  explicit FakeModel(FakeOptions options = {});
  const Metadata& metadata() const override { return metadata_; }
  uint64_t identity() const override { return options.seed; }
  TowerSpec tower() const override;
  std::unique_ptr<Session> open(const SessionLimits& limits) const override;

  const FakeOptions options;
  // Callback of launch with each batch; may throw, or block.
  std::function<void(const Batch&)> on_launch;
  // Callback of see with each tile; may throw, or block.
  std::function<void(const ImageTile&)> on_see;
  // Callback with the logits of each row and the number of tokens before it.
  std::function<void(float* row, int64_t tokens)> on_logits;
  // Least time of a launch of kForward; the block of multi-token prediction takes none.
  std::chrono::milliseconds forward_time{0};

 private:
  Metadata metadata_;
};

constexpr TowerSpec kFakeTower{12, 2};

// Returns a prompt as the layers see it: negative numbers, which depend on all of the tile, are in
// the place of image rows.
std::vector<int32_t> with_fake_features(const std::vector<int32_t>& prompt,
                                        const wherry_params& params);

// Returns the logits after `tokens` (and a source, for models that read one), [vocab].
std::vector<float> fake_logits(const FakeOptions& options, const std::vector<int32_t>& tokens,
                               const std::vector<int32_t>& source = {});

constexpr int64_t kFakeEmbedding = 3;  // elements of an embedding
std::vector<float> fake_embedding(const FakeOptions& options, const std::vector<int32_t>& tokens);

// Returns the expected output of a request, with its images: samples fake_logits token by token
// with StandardSampler, without an engine, until WHERRY_STOP or WHERRY_LENGTH. Takes ownership of
// the mask, if there is one.
std::vector<int32_t> fake_output(const FakeOptions& options, const std::vector<int32_t>& prompt,
                                 const wherry_params& params, int64_t context);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
