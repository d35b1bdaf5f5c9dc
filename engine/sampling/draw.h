// Draws a token by inverse transform sampling.
#ifndef WHERRY_ENGINE_SAMPLING_DRAW_H_
#define WHERRY_ENGINE_SAMPLING_DRAW_H_

#include <cstdint>
#include <vector>

#include "sampling/truncation.h"

namespace wherry {

struct Drawn {
  int32_t token;
  double probability;  // the token's probability among the tokens that truncation kept
};

// Draws a token. Each kept token has an interval of [0, 1) as wide as its probability. The
// intervals are in the order of ranks; if no stage cut the tail, the 64 (Ranking::kFirst) most
// likely tokens are in the order of ranks, the rest by id. So a few candidates decide most draws,
// and no draw sorts a whole row.
class Draw {
 public:
  // Draws a token of `kept`. u: the random number, in [0, 1).
  Drawn from(Truncation& kept, double u);

 private:
  Drawn from_ranks(Truncation& kept, double u);
  Drawn from_head_and_tail(Truncation& kept, double u);
  // Computes the weights of the kept tokens beyond the head, block by block; returns their sum.
  double weigh_tail(Truncation& kept);
  // Computes the weights of one block into weights_; 0 for tokens in the head or truncated ones.
  void weigh_block(Truncation& kept, size_t block);
  Drawn from_tail(Truncation& kept, double rest);

  std::vector<float> weights_;  // [kSoftmaxBlock]
  std::vector<double> block_sums_;
  std::vector<int32_t> elsewhere_;  // tokens that are not in the tail, in ascending order
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_DRAW_H_
