// How many draft tokens one request gets: its acceptance rate so far against the cost of a row. It
// changes no token, only the time.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_

#include <cstdint>

namespace wherry {

// Costs of a draft token, as shares of a step of the running requests without any.
struct DraftCost {
  double row = 0;    // of verifying it: a row
  double draft = 0;  // of proposing it: a draft model's step
};

class DraftLength {
 public:
  // asked: wherry_params.max_drafts; -1: the engine's choice.
  explicit DraftLength(int32_t asked) : asked_(asked) {}

  // The length with the most tokens a second, at most `limit`; 0: none. `fallback`: the engine's
  // own choice. Where none pays, one is tried now and then.
  int64_t next(int64_t limit, int64_t fallback, const DraftCost& cost);

  // Whether some step may have draft tokens.
  bool may_draft(int64_t fallback) const { return asked_ < 0 ? fallback > 0 : asked_ > 0; }

  // The first `right` of `drafted` tokens were accepted.
  void record(int64_t drafted, int64_t right);

 private:
  int32_t asked_;
  double rate_ = 0.7;    // of acceptance if those before it were accepted: a moving average
  int32_t skipped_ = 0;  // steps since the last draft token
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
