// The draw: inverse transform sampling.
#ifndef WHERRY_ENGINE_SAMPLING_DRAW_H_
#define WHERRY_ENGINE_SAMPLING_DRAW_H_

#include <cstdint>
#include <vector>

#include "sampling/truncation.h"

namespace wherry {

struct Drawn {
  int32_t token;
  double probability;  // among the kept tokens
};

// The kept tokens lie on [0, 1) side by side, each as wide as its probability, by rank; where no
// stage has cut the tail, the 64 (Ranking::kFirst) most likely ones of the row by rank, the rest by
// id. A short list of candidates then decides most draws, and none needs a whole row in order.
class Draw {
 public:
  // u in [0, 1).
  Drawn from(Truncation& kept, double u);

 private:
  Drawn from_ranks(Truncation& kept, double u);
  Drawn from_head_and_tail(Truncation& kept, double u);
  // Weights of what is kept beyond the head, by block; their sum.
  double weigh_tail(Truncation& kept);
  // Weights of one block, into weights_; 0 for tokens of the head or truncated ones.
  void weigh_block(Truncation& kept, size_t block);
  Drawn from_tail(Truncation& kept, double rest);

  std::vector<float> weights_;  // [kSoftmaxBlock]
  std::vector<double> block_sums_;
  std::vector<int32_t> elsewhere_;  // tokens that are not of the tail, ascending
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_DRAW_H_
