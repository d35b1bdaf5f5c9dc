// What a device reads back of a row of logits in place of the row.
#ifndef WHERRY_ENGINE_MODEL_CANDIDATES_H_
#define WHERRY_ENGINE_MODEL_CANDIDATES_H_

#include <cstdint>

namespace wherry {

// Candidates of one row of logits without NaN and +inf.
struct Candidates {
  const int32_t* ids;   // [count] the most likely tokens, descending; of equals the lower id first
  const float* logits;  // [count] theirs, as in the row
  int64_t count;        // at least Ranking::kFirst decide most rows; 0: the whole row is needed
  int64_t vocab;        // tokens of the whole row
  double total;         // of exp(x - maximum) over the row; maximum is logits[0]
  double scaled_total;  // of exp((x - maximum) * scale), the scale that was asked for
  double relative_error;  // that both sums have at most, in [0, 1)
  int32_t chosen = -1;    // the token that rows of the next step have (Batch::chosen_from)
};

// How a device is to draw a token of a row from its candidates, at the scale that they were asked
// for.
struct Choice {
  float place = 0;  // of the draw, in [0, 1)
  int32_t top_k = 1;
  float top_p = 1, min_p = 0;

  bool most_likely() const { return top_k == 1; }
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_CANDIDATES_H_
