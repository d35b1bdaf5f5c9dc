#include "sampling/logprobs.h"

#include <cmath>

#include "sampling/ranking.h"
#include "sampling/softmax.h"
#include "support/error.h"

namespace wherry {

namespace {

double* room_for_blocks(std::vector<double>* sums, int64_t vocab) {
  if (sums == nullptr) return nullptr;
  sums->resize(static_cast<size_t>((vocab + kSoftmaxBlock - 1) / kSoftmaxBlock));
  return sums->data();
}

}  // namespace

Logprobs::Logprobs(const float* logits, int64_t vocab, float maximum,
                   std::vector<double>* block_sums)
    : logits_(logits),
      vocab_(vocab),
      maximum_(maximum),
      total_(exponentials(logits, vocab, maximum, 1, nullptr, room_for_blocks(block_sums, vocab))),
      log_total_(std::log(total_)) {}

float Logprobs::of(int32_t token) const {
  return static_cast<float>(static_cast<double>(logits_[token] - maximum_) - log_total_);
}

TokenLogprobs Logprobs::top(int64_t n) const {
  TokenLogprobs result;
  if (n == 0) return result;
  std::vector<int32_t> ids;
  rank(logits_, vocab_, n, ids);
  for (int32_t id : ids) result.emplace_back(id, of(id));
  return result;
}

ScoredToken score(const float* logits, int64_t vocab, int32_t token, int64_t n) {
  RowMaximum best = row_maximum(logits, vocab);
  if (!best.valid) {
    throw Error(WHERRY_INTERNAL,
                concat("the model's logits before token ", token,
                       " of the prompt hold NaN or infinity: the weights or the compiled model "
                       "are damaged"));
  }
  Logprobs logprobs(logits, vocab, best.value);
  return {logprobs.of(token), logprobs.top(n)};
}

}  // namespace wherry
