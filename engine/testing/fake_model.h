// A model for tests. Its logits are a function of the sequence's tokens so far, which it reads
// through the page tables from state that earlier steps wrote. A wrong page, position, index, slot
// or chunk gives other tokens than fake_output(), or an exception.
#ifndef WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
#define WHERRY_ENGINE_TESTING_FAKE_MODEL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "model/model.h"
#include "testing/fake_options.h"
#include "wherry.h"

namespace wherry {

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

// Returns the expected output of a request, with its images: samples fake_logits token by token
// with StandardSampler, without an engine, until WHERRY_STOP or WHERRY_LENGTH. Takes ownership of
// the mask, if there is one.
std::vector<int32_t> fake_output(const FakeOptions& options, const std::vector<int32_t>& prompt,
                                 const wherry_params& params, int64_t context);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_MODEL_H_
