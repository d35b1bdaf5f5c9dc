// Proposes draft tokens by computation: with a draft model, or the model's own block.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFTER_H_
#define WHERRY_ENGINE_SPECULATION_DRAFTER_H_

#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "model/model.h"
#include "sampling/sampler.h"

namespace wherry {

// A running sequence that needs draft tokens.
struct DraftJob {
  uint64_t id;
  const SamplingInput input;  // tokens so far, and sampling parameters
  const PrefixSpace& space;
  const SequenceState& sequence;      // pages of the model, for the newest token and `most` more
  int64_t rope_delta;                 // what M-RoPE adds to positions after the prompt
  int64_t most;                       // upper bound on the number of draft tokens
  std::vector<int32_t> draft_tokens;  // the proposed draft tokens, set by propose()

  // Returns the context of the next draft token: prompt, output and draft tokens so far.
  std::vector<int32_t> text() const {
    std::vector<int32_t> text = input.tokens;
    text.insert(text.end(), draft_tokens.begin(), draft_tokens.end());
    return text;
  }
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // Proposes draft tokens for all jobs together, with one step for each token. It samples a draft
  // token as the model will: greedily, or with the request's own generator, so that equal logits
  // give the same token. session: that of the model, with no step in flight.
  virtual void propose(std::vector<DraftJob>& jobs, Session& session) = 0;

  // Whether requests with images can have draft tokens.
  virtual bool reads_images() const = 0;

  virtual void remove(uint64_t id) = 0;  // frees a request's state; call it when it has ended
  virtual void clear() = 0;

  double step_seconds() const { return step_seconds_; }  // moving average of a draft step's seconds

 protected:
  void record(double seconds) {
    step_seconds_ = step_seconds_ == 0 ? seconds : 0.75 * step_seconds_ + 0.25 * seconds;
  }

 private:
  double step_seconds_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFTER_H_
