// How many tokens to guess for one request: what its guesses were worth so far against what a row
// costs. Guessing changes no token, only the time it takes.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_

#include <cstdint>

namespace wherry {

// Of a step with guesses, as shares of a step of running requests without.
struct GuessCost {
  double row = 0;    // of computing a guessed token
  double draft = 0;  // of guessing it: a draft model's step
};

class DraftLength {
 public:
  // asked: wherry_params.max_drafts; -1: the engine's choice.
  explicit DraftLength(int32_t asked) : asked_(asked) {}

  // The length with the most tokens a second, at most `limit`; 0: none. `fallback`: the engine's
  // own choice. Every so often one guess is made where none pays, to see whether it would.
  int64_t next(int64_t limit, int64_t fallback, const GuessCost& cost);

  // Whether some step may have guesses.
  bool may_guess(int64_t fallback) const { return asked_ < 0 ? fallback > 0 : asked_ > 0; }

  // Of `guessed` tokens the first `right` were right.
  void record(int64_t guessed, int64_t right);

 private:
  int32_t asked_;
  double rate_ = 0.7;    // that a guess is right if those before it were: a moving average
  int32_t skipped_ = 0;  // steps since a guess
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_LENGTH_H_
