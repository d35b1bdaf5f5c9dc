#include "sampling/truncation.h"

#include <algorithm>

#include "sampling/elementary.h"
#include "sampling/moments.h"
#include "sampling/softmax.h"

namespace wherry {

void Truncation::start(const float* x, int64_t vocab, float maximum, float inverse_temperature,
                       double mass, const std::vector<double>* block_sums) {
  x_ = x;
  vocab_ = vocab;
  maximum_ = maximum;
  scale_ = inverse_temperature;
  begin_ = 0;
  end_ = vocab;
  mass_ = mass;
  sums_ = block_sums;
  ranking_.start(x, vocab);
}

int32_t Truncation::id(int64_t rank) {
  ranking_.has(rank);
  return ranking_.id(rank);
}

double Truncation::log_weight(int64_t rank) {
  return static_cast<double>((x_[id(rank)] - maximum_) * scale_);
}

double Truncation::weight(int64_t rank) {
  return static_cast<double>(exp_float((x_[id(rank)] - maximum_) * scale_));
}

double Truncation::mass() {
  if (mass_ >= 0) return mass_;
  if (has_tail() && begin_ == 0) {
    sums_ = nullptr;
    mass_ = 0;
    for (double block : block_sums()) mass_ += block;
  } else {
    mass_ = 0;
    for (int64_t i = begin_; i < end_; ++i) mass_ += weight(i);
  }
  return mass_;
}

const std::vector<double>& Truncation::block_sums() {
  if (sums_ != nullptr) return *sums_;
  own_sums_.resize(static_cast<size_t>((vocab_ + kSoftmaxBlock - 1) / kSoftmaxBlock));
  exponentials(x_, vocab_, maximum_, scale_, nullptr, own_sums_.data());
  sums_ = &own_sums_;
  return own_sums_;
}

void Truncation::keep(int64_t begin, int64_t end) {
  if (begin == begin_ && end == end_) return;
  begin_ = begin;
  end_ = end;
  mass_ = -1;
}

void Truncation::top_n_sigma(float n) {
  double least =
      static_cast<double>(maximum_) - static_cast<double>(n) * row_moments(x_, vocab_).deviation;
  int64_t end = begin_ + 1;
  while (end < end_ && static_cast<double>(x_[id(end)]) >= least) ++end;
  keep(begin_, end);
}

void Truncation::top_k(int64_t k) {
  ranking_.reach(std::min(k, vocab_));
  keep(begin_, std::min(end_, begin_ + k));
}

void Truncation::typical(float p) {
  WeightSums sums{0, 0};
  if (has_tail() && begin_ == 0) {
    sums = weight_sums(x_, vocab_, maximum_, scale_);
  } else {
    for (int64_t i = begin_; i < end_; ++i) {
      double w = weight(i);
      sums.total += w;
      sums.product += w > 0 ? w * log_weight(i) : 0;
    }
  }
  // Ranks by surprise - entropy = (ln total - l) - (ln total - product / total).
  double middle = sums.product / sums.total;
  int64_t begin = begin_;
  while (begin < end_ && log_weight(begin) > middle) ++begin;
  int64_t end = begin;
  double goal = static_cast<double>(p) * sums.total, sum = 0;
  while (end == begin || sum < goal) {
    bool down = end < end_ && weight(end) > 0, up = begin > begin_;
    if (up && down) down = middle - log_weight(end) < log_weight(begin - 1) - middle;
    if (!up && !down) break;
    sum += weight(down ? end++ : --begin);
  }
  keep(begin, end);
}

void Truncation::top_p(float p) {
  double goal = static_cast<double>(p) * mass(), sum = weight(begin_);
  int64_t end = begin_ + 1;
  while (end < end_ && sum < goal) sum += weight(end++);
  bool all = end == end_;
  keep(begin_, end);
  if (!all) mass_ = sum;
}

void Truncation::min_p(float share) {
  double least = static_cast<double>(share) * weight(begin_);
  int64_t end = begin_ + 1;
  while (end < end_ && weight(end) >= least) ++end;
  keep(begin_, end);
}

void Truncation::exclude_top(float probability) {
  double least = static_cast<double>(probability) * mass();
  int64_t likely = begin_;
  while (likely < end_ && weight(likely) >= least) ++likely;
  if (likely > begin_ + 1) keep(likely - 1, end_);
}

void Truncation::surprise(double bits) {
  constexpr double kLn2 = 0.69314718055994530942;
  double least = exp_double(-bits * kLn2) * mass();
  int64_t end = begin_ + 1;
  while (end < end_ && weight(end) >= least) ++end;
  keep(begin_, end);
}

}  // namespace wherry
