// Log-probabilities of the model's own distribution: without bias, without penalties, at
// temperature 1.
#ifndef WHERRY_ENGINE_SAMPLING_LOGPROBS_H_
#define WHERRY_ENGINE_SAMPLING_LOGPROBS_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace wherry {

using TokenLogprobs = std::vector<std::pair<int32_t, float>>;  // pairs of token id and logprob

class Logprobs {
 public:
  // Computes the sum of exp(logit - maximum). logits: [vocab], must outlive the object; maximum:
  // their largest; block_sums: if not null, gets the sums of each kSoftmaxBlock of exp(logit -
  // maximum).
  Logprobs(const float* logits, int64_t vocab, float maximum,
           std::vector<double>* block_sums = nullptr);

  float of(int32_t token) const;
  // The sum of exp(logit - maximum) over the row.
  double total() const { return total_; }
  // Returns the n most likely tokens (all if there are fewer), descending; of equal ones the lower
  // id first.
  TokenLogprobs top(int64_t n) const;

 private:
  const float* logits_;
  int64_t vocab_;
  float maximum_;
  double total_, log_total_;
};

struct ScoredToken {
  float logprob = 0;
  TokenLogprobs top;
};

// Scores a known token, such as one of a prompt: returns its logprob in the row of logits [vocab]
// before it, and the n most likely tokens of the row. Throws Error if the row has NaN or +inf.
ScoredToken score(const float* logits, int64_t vocab, int32_t token, int64_t n);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_LOGPROBS_H_
