// Chooses how many draft tokens a request gets, from its acceptance rate so far and the cost of a
// row. The choice changes the speed and no token.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_

#include <cstdint>

namespace wherry {

// Costs of a draft token, relative to a step of the running requests without draft tokens.
struct DraftCost {
  double row = 0;    // to verify it: one row
  double draft = 0;  // to propose it: a step of the draft model
};

class DraftLength {
 public:
  // asked: wherry_params.max_drafts; -1: the engine's choice.
  explicit DraftLength(int32_t asked) : asked_(asked) {}

  // The length that gives the most tokens a second, at most `limit`; 0: none. `fallback`: the
  // engine's choice. If no length pays, it tries 1 from time to time.
  int64_t next(int64_t limit, int64_t fallback, const DraftCost& cost);

  // Whether any step can have draft tokens.
  bool may_draft(int64_t fallback) const { return asked_ < 0 ? fallback > 0 : asked_ > 0; }

  // The first `right` of `drafted` tokens were accepted.
  void record(int64_t drafted, int64_t right);

 private:
  int32_t asked_;
  double rate_ = 0.7;    // moving average of acceptance, given that earlier ones were accepted
  int32_t skipped_ = 0;  // steps since the last draft token
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
