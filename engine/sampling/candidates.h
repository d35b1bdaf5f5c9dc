// The candidates (most likely tokens) that a device returns instead of a row of logits.
#ifndef WHERRY_ENGINE_SAMPLING_CANDIDATES_H_
#define WHERRY_ENGINE_SAMPLING_CANDIDATES_H_

#include <cstdint>

namespace wherry {

// Candidates of one row of logits, which has no NaN and no +inf.
struct Candidates {
  // [count] the most likely tokens, descending; of equal ones the lower id first.
  const int32_t* ids;
  const float* logits;  // [count] their logits
  // Ranking::kFirst or more candidates decide most rows; 0 means that the whole row is needed.
  int64_t count;
  int64_t vocab;          // number of tokens of the whole row
  double total;           // sum of exp(x - maximum) over the row; maximum is logits[0]
  double scaled_total;    // sum of exp((x - maximum) * scale), with the requested scale
  double relative_error;  // upper bound on the relative error of both sums, in [0, 1)
  // The token that the device drew as input of the next step (Batch::chosen_from); -1 if none.
  int32_t chosen = -1;
};

// Describes how the device draws a token from a row's candidates, at their scale.
struct Choice {
  float place = 0;  // random number of the draw, in [0, 1)
  int32_t top_k = 1;
  float top_p = 1, min_p = 0;

  bool most_likely() const { return top_k == 1; }
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_CANDIDATES_H_
