// Chooses how many draft tokens a request gets, from its acceptance rate so far and the cost of a
// row. The choice changes the speed and no token.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_

#include <cstdint>

namespace wherry {

// Costs of a draft token, relative to a step of the running requests without draft tokens.
struct DraftCost {
  double row = 0;    // cost of verifying a draft token: one row
  double draft = 0;  // cost of proposing a draft token: a step of the draft model or block
  // Cost of computing a token again after a rejection, because a recurrent state went back.
  double again = 0;
};

class DraftLength {
 public:
  // requested: wherry_params.max_drafts; -1 means the engine's choice.
  explicit DraftLength(int32_t requested) : requested_(requested) {}

  // Returns the number of draft tokens that gives the most tokens per second, at most `limit`; may
  // be 0. fallback: the engine's choice. If no number pays, it returns 1 from time to time as a
  // trial.
  int64_t next(int64_t limit, int64_t fallback, const DraftCost& cost);

  // Whether any step of the request can have draft tokens.
  bool may_draft(int64_t fallback) const { return requested_ < 0 ? fallback > 0 : requested_ > 0; }

  // Records that the first `right` of `drafted` draft tokens were accepted.
  void record(int64_t drafted, int64_t right);

 private:
  int32_t requested_;
  // Moving average of the acceptance of a token whose predecessors were accepted.
  double rate_ = 0.7;
  int32_t skipped_ = 0;  // number of steps since the last draft token
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
