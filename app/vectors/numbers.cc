#include "app/vectors/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "app/value/base64.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr double kLargestExponent = 700;  // exp of more than 709 is infinite

}  // namespace

void require_finite(const Floats& values) {
  if (std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) return;
  throw Error(WHERRY_INTERNAL,
              "The model's result holds NaN or infinity: the weights or the compiled model are "
              "damaged");
}

Floats unit(Floats values) {
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::sqrt(squares);
  if (length == 0) return values;
  for (float& x : values) x /= static_cast<float>(length);
  return values;
}

Floats embedding_of(Floats values, const Head& head, size_t dimensions) {
  require_finite(values);
  if (dimensions > 0 && dimensions < values.size()) values.resize(dimensions);
  return head.normalize ? unit(std::move(values)) : values;
}

std::vector<double> probabilities(const Floats& logits, Activation activation) {
  require_finite(logits);
  std::vector<double> result(logits.begin(), logits.end());
  if (activation == Activation::kSigmoid) {
    for (double& x : result) x = 1 / (1 + std::exp(std::min(-x, kLargestExponent)));
  }
  if (activation != Activation::kSoftmax || result.empty()) return result;
  const double top = *std::max_element(result.begin(), result.end());
  double total = 0;
  for (double& x : result) total += x = std::exp(x - top);
  for (double& x : result) x /= total;
  return result;
}

double cosine(const Floats& a, const Floats& b, const Head& head) {
  const Floats left = unit(embedding_of(a, head, 0)), right = unit(embedding_of(b, head, 0));
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    sum += static_cast<double>(left[i]) * static_cast<double>(right[i]);
  }
  return std::min(std::max(sum, -1.0), 1.0);  // rounding may exceed them
}

double probability(double yes, double no) {
  return 1 / (1 + std::exp(std::min(no - yes, kLargestExponent)));
}

std::string in_base64(const Floats& values) {
  std::string bytes;  // little-endian on any machine
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  return encode_base64(bytes);
}

}  // namespace wherry::app
