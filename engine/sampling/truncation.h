// The stages that leave tokens out. Each keeps a run of ranks: equal logits rank by token id, and
// what is kept after any of them are the ranks begin..end.
#ifndef WHERRY_ENGINE_SAMPLING_TRUNCATION_H_
#define WHERRY_ENGINE_SAMPLING_TRUNCATION_H_

#include <cstdint>
#include <vector>

#include "sampling/ranking.h"

namespace wherry {

// A token's weight is exp((x - maximum) / temperature), its probability at any stage its weight's
// share of what the stages before it have kept. At least one token always stays.
class Truncation {
 public:
  // Everything is kept. x [vocab], with its largest, must outlive the use. `mass`: the sum of the
  // weights (exponentials(), softmax.h) where it is known, else -1; `block_sums`: its parts, where
  // they are, too.
  void start(const float* x, int64_t vocab, float maximum, float inverse_temperature, double mass,
             const std::vector<double>* block_sums = nullptr);

  // Logits from maximum - n * (their standard deviation in the row) on, whatever the temperature
  // (Tang et al. 2024, arXiv:2411.07641).
  void top_n_sigma(float n);
  void top_k(int64_t k);
  // The fewest tokens with a share of p whose surprise is nearest to the entropy (Meister et al.
  // 2022, arXiv:2202.00666); of two that are as near the more likely.
  void typical(float p);
  // The fewest most likely tokens with a share of p (Holtzman et al. 2019, arXiv:1904.09751).
  void top_p(float p);
  // Tokens of at least this share of the most likely one's probability (Nguyen et al. 2024,
  // arXiv:2407.01082).
  void min_p(float share);
  // All but the least likely of those of at least this probability go (XTC, p-e-w,
  // github.com/oobabooga/text-generation-webui/pull/6335).
  void exclude_top(float probability);
  // Tokens of at most this surprise, -log2 of the probability (mirostat 2, Basu et al. 2020,
  // arXiv:2007.14966).
  void surprise(double bits);

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  // Whether the least likely tokens are all there.
  bool has_tail() const { return end_ == vocab_; }
  // The token of this rank, below vocab().
  int32_t id(int64_t rank);
  double weight(int64_t rank);
  // The sum of the kept tokens' weights.
  double mass();
  // Sums of all tokens' weights, in blocks of kSoftmaxBlock.
  const std::vector<double>& block_sums();

  const float* x() const { return x_; }
  int64_t vocab() const { return vocab_; }
  float maximum() const { return maximum_; }
  float scale() const { return scale_; }

 private:
  void keep(int64_t begin, int64_t end);
  double log_weight(int64_t rank);

  const float* x_ = nullptr;
  int64_t vocab_ = 0;
  float maximum_ = 0, scale_ = 1;
  int64_t begin_ = 0, end_ = 0;
  double mass_ = -1;  // -1: not known
  std::vector<double> own_sums_;
  const std::vector<double>* sums_ = nullptr;  // null: not known
  Ranking ranking_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_TRUNCATION_H_
