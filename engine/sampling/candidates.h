// The candidates that a device returns instead of a row of logits.
#ifndef WHERRY_ENGINE_SAMPLING_CANDIDATES_H_
#define WHERRY_ENGINE_SAMPLING_CANDIDATES_H_

#include <cstdint>

namespace wherry {

// Candidates of one row of logits without NaN and +inf.
struct Candidates {
  const int32_t* ids;   // [count] the most likely tokens, descending; of equals the lower id first
  const float* logits;  // [count] their logits
  int64_t count;        // Ranking::kFirst or more decide most rows; 0: the whole row is needed
  int64_t vocab;        // tokens of the whole row
  double total;         // sum of exp(x - maximum) over the row; maximum is logits[0]
  double scaled_total;  // sum of exp((x - maximum) * scale), with the requested scale
  double relative_error;  // upper bound for both sums, in [0, 1)
  int32_t chosen = -1;    // the device's token, input of the next step (Batch::chosen_from)
};

// How the device draws a token from a row's candidates, at their scale.
struct Choice {
  float place = 0;  // the random number of the draw, in [0, 1)
  int32_t top_k = 1;
  float top_p = 1, min_p = 0;

  bool most_likely() const { return top_k == 1; }
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_CANDIDATES_H_
