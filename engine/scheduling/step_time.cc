#include "scheduling/step_time.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace wherry {

namespace {

constexpr double kRemember = 0.75;  // share of the old value in a moving average
constexpr double kRememberDeviation = 0.9;
// A step that takes this factor longer than predicted counts as disturbed.
constexpr double kOutlier = 2;
constexpr double kEqual = 0.02 * 0.02;  // fits whose mean square errors differ by less are equal
constexpr size_t kMostMeans = 256;
constexpr int kExact = 32;  // up to this number of rows, each number has its own mean

void learn(double old, double& average, double value) {
  average = old * average + (1 - old) * value;
}

// Returns the key of a number of rows: exact up to kExact, then eight keys for each doubling.
int rows_key(int64_t rows) {
  if (rows <= kExact) return static_cast<int>(rows);
  return kExact + static_cast<int>(8 * std::log2(static_cast<double>(rows) / kExact));
}

}  // namespace

StepTime::Key StepTime::key_of(const StepWork& work) {
  double context = static_cast<double>(work.attended) / static_cast<double>(work.rows);
  return {rows_key(work.rows), static_cast<int>(std::log2(context + 1))};
}

StepTime::Terms StepTime::terms_of(const StepWork& work) {
  return {1, static_cast<double>(work.rows), static_cast<double>(work.context),
          static_cast<double>(work.attended)};
}

double StepTime::value(const Terms& fit, const Terms& work) {
  double seconds = 0;
  for (size_t i = 0; i < kTerms; ++i) seconds += fit[i] * work[i];
  return seconds;
}

void StepTime::record(const StepWork& work, double seconds) {
  if (work.rows <= 0 || !(seconds > 0)) return;
  const Terms terms = terms_of(work);
  auto [place, fresh] = means_.try_emplace(key_of(work), Mean{terms, seconds, 0});
  Mean& mean = place->second;
  if (!fresh) {
    if (fits_.empty()) fit();  // otherwise an older fit is good enough
    double expected = predict(fits_[0], work, &mean);
    learn(kRememberDeviation, deviation_, std::min(1.0, std::abs(seconds / expected - 1)));
    bool disturbed = expected > kOutlier * seconds;  // true if the earlier steps were disturbed
    double old = disturbed ? 0 : kRemember;
    for (size_t i = 0; i < kTerms; ++i) learn(old, mean.work[i], terms[i]);
    learn(old, mean.seconds, std::min(seconds, kOutlier * expected));
  }
  mean.last = ++recorded_;
  fitted_ = false;
  if (means_.size() > kMostMeans) forget_oldest();
}

void StepTime::forget_oldest() {
  means_.erase(std::min_element(means_.begin(), means_.end(), [](const auto& a, const auto& b) {
    return a.second.last < b.second.last;
  }));
}

const StepTime::Mean* StepTime::nearest(const StepWork& work) const {
  const Key key = key_of(work);
  const Mean* closest = nullptr;
  int distance = 0;
  for (auto it = means_.lower_bound({key.first, INT32_MIN});
       it != means_.end() && it->first.first == key.first; ++it) {
    int away = std::abs(it->first.second - key.second);
    if (closest == nullptr || away < distance) closest = &it->second, distance = away;
  }
  return closest;
}

double StepTime::predict(const Fit& fit, const StepWork& work, const Mean* nearest) {
  double seconds = value(fit.seconds, terms_of(work));
  return nearest ? seconds * nearest->seconds / value(fit.seconds, nearest->work) : seconds;
}

double StepTime::predict(const StepWork& work) const {
  fit();
  return fits_.empty() ? 0 : predict(fits_[0], work, nearest(work));
}

double StepTime::longest(const StepWork& work) const {
  fit();
  double most = 0;
  for (const Fit& one : fits_) most = std::max(most, predict(one, work, nearest(work)));
  return most;
}

double StepTime::slowdown(const StepWork& work, const StepWork& with) const {
  fit();
  const Mean *near_work = nearest(work), *near_with = nearest(with);
  double most = 0;
  for (const Fit& one : fits_) {
    most = std::max(most, predict(one, with, near_with) / predict(one, work, near_work));
  }
  return most;
}

double StepTime::row_seconds(double context) const {
  bool one_kind = means_.empty() || means_.begin()->first.first == means_.rbegin()->first.first;
  if (one_kind) return 0;
  fit();
  return fits_.empty() ? 0 : fits_[0].seconds[1] + fits_[0].seconds[3] * context;
}

// Fits the coefficients by least squares of relative errors over each subset of terms; keeps fits
// without negative coefficients.
void StepTime::fit() const {
  if (fitted_) return;
  fitted_ = true;
  fits_.clear();
  std::array<Terms, kTerms> products{};
  Terms sums{};
  for (const auto& [key, mean] : means_) {
    Terms x;
    for (size_t i = 0; i < kTerms; ++i) x[i] = mean.work[i] / mean.seconds;
    for (size_t i = 0; i < kTerms; ++i) {
      sums[i] += x[i];
      for (size_t j = 0; j < kTerms; ++j) products[i][j] += x[i] * x[j];
    }
  }
  for (unsigned used = 1; used < 1u << kTerms; ++used) solve(products, sums, used);
  auto less = [](const Fit& a, const Fit& b) { return a.error < b.error; };
  std::sort(fits_.begin(), fits_.end(), less);
  while (fits_.size() > 1 && fits_.back().error > fits_[0].error + kEqual) fits_.pop_back();
}

// Solves the normal equations by Gaussian elimination over the terms whose bit is set. The pivots
// are scaled to 1 first; a pivot near 0 means that the measurements do not separate its term from
// others.
void StepTime::solve(const std::array<Terms, kTerms>& products, const Terms& sums,
                     unsigned used) const {
  constexpr double kVanishing = 1e-9;
  std::vector<size_t> terms;
  for (size_t i = 0; i < kTerms; ++i) {
    if ((used >> i & 1u) != 0) terms.push_back(i);
  }
  const size_t n = terms.size();
  std::array<std::array<double, kTerms + 1>, kTerms> a{};
  auto scale = [&](size_t i) { return std::sqrt(products[terms[i]][terms[i]]); };
  for (size_t i = 0; i < n; ++i) {
    if (scale(i) == 0) return;
    for (size_t j = 0; j < n; ++j) {
      a[i][j] = products[terms[i]][terms[j]] / (scale(i) * scale(j));
    }
    a[i][kTerms] = sums[terms[i]] / scale(i);
  }
  for (size_t i = 0; i < n; ++i) {
    if (a[i][i] < kVanishing) return;
    for (size_t k = 0; k < n; ++k) {
      double share = a[k][i] / a[i][i];
      if (k == i) continue;
      for (size_t j = 0; j <= kTerms; ++j) a[k][j] -= share * a[i][j];
    }
  }
  Fit fit{{}, 0};
  for (size_t i = 0; i < n; ++i) {
    double seconds = a[i][kTerms] / a[i][i] / scale(i);
    if (seconds < 0) return;
    fit.seconds[terms[i]] = seconds;
  }
  for (const auto& [key, mean] : means_) {
    double wrong = value(fit.seconds, mean.work) / mean.seconds - 1;
    fit.error += wrong * wrong / static_cast<double>(means_.size());
  }
  fits_.push_back(fit);
}

}  // namespace wherry
