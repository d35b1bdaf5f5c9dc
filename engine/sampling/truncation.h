// The truncation stages of sampling. Equal logits rank by token id; after each stage the kept
// tokens are those of the ranks begin..end.
#ifndef WHERRY_ENGINE_SAMPLING_TRUNCATION_H_
#define WHERRY_ENGINE_SAMPLING_TRUNCATION_H_

#include <cstdint>
#include <vector>

#include "sampling/ranking.h"

namespace wherry {

// Truncates a distribution. A token's weight is exp((x - maximum) / temperature); its probability
// in a stage is its share of the weights that earlier stages kept. Each stage keeps at least one
// token.
class Truncation {
 public:
  // Starts with all tokens of x [vocab], whose largest is `maximum`; x must outlive the use. mass:
  // the sum of the weights (exponentials(), softmax.h) if known, else -1. block_sums: the sums of
  // the weights by block, null if not known.
  void start(const float* x, int64_t vocab, float maximum, float inverse_temperature, double mass,
             const std::vector<double>* block_sums = nullptr);

  // Keeps the logits that are at least maximum - n * (standard deviation of the row's logits), at
  // any temperature (Tang et al. 2024, arXiv:2411.07641).
  void top_n_sigma(float n);
  void top_k(int64_t k);
  // Keeps the fewest tokens whose share reaches p: those whose surprise is nearest to the entropy
  // first, and of two equally near the more likely one (Meister et al. 2022, arXiv:2202.00666).
  void typical(float p);
  // Keeps the fewest most likely tokens whose share reaches p (Holtzman et al. 2019,
  // arXiv:1904.09751).
  void top_p(float p);
  // Keeps tokens whose probability is at least this share of the largest one (Nguyen et al. 2024,
  // arXiv:2407.01082).
  void min_p(float share);
  // Of the tokens with at least this probability, keeps only the least likely (XTC, p-e-w,
  // github.com/oobabooga/text-generation-webui/pull/6335).
  void exclude_top(float probability);
  // Keeps tokens whose surprise, -log2 of the probability, is at most `bits` (mirostat 2, Basu et
  // al. 2020, arXiv:2007.14966).
  void surprise(double bits);

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  // Whether the least likely tokens are still kept.
  bool has_tail() const { return end_ == vocab_; }
  // Returns the token of this rank, below vocab().
  int32_t id(int64_t rank);
  double weight(int64_t rank);
  // Returns the sum of the kept tokens' weights.
  double mass();
  // Returns the sums of all tokens' weights, in blocks of kSoftmaxBlock.
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
  double mass_ = -1;  // sum of the kept weights; -1 if not known
  std::vector<double> own_sums_;
  const std::vector<double>* sums_ = nullptr;  // sums of all weights by block; null if not known
  Ranking ranking_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_TRUNCATION_H_
