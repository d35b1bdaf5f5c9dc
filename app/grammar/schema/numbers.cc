#include "app/grammar/schema/numbers.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace wherry::app {

namespace {

using json::Kind;
using Is = Numbers::Is;

constexpr size_t kMostNumberStates = 8000;
// Upper bounds on digits after the decimal point, for numbers with at most kLongestWhole digits
// before it, unless the schema allows more. Doubles have fifteen digits, so a longer number might
// be rounded across a bound.
constexpr size_t kLongestFraction = 6, kLongestInteger = 9;
// Upper bound on digits before the decimal point, unless a limit has as many. Multiples have none,
// because each digit would add a state for each remainder.
constexpr size_t kMostDigits = 19;
constexpr double kLargest = 9223372036854775808.0;  // 2^63 as a double

int sign_of(const Decimal& value) {
  if (value.negative) return -1;
  return value.integer_part == "0" && value.fraction.empty() ? 0 : 1;
}

int compare_sizes(const Decimal& a, const Decimal& b) {
  if (a.integer_part.size() != b.integer_part.size())
    return a.integer_part.size() < b.integer_part.size() ? -1 : 1;
  const int integer_part = a.integer_part.compare(b.integer_part);
  return integer_part != 0 ? integer_part : a.fraction.compare(b.fraction);
}

bool allows(Is is, int order) {
  switch (is) {
    case Is::kLeast:
      return order >= 0;
    case Is::kAbove:
      return order > 0;
    case Is::kMost:
      return order <= 0;
    case Is::kBelow:
      return order < 0;
    default:
      return order != 0;
  }
}

// A divisor (multipleOf) as an integer, scaled by a power of ten.
struct Divisor {
  int64_t scaled;
  size_t places;
};

Divisor divisor_of(const Decimal& value) {
  const std::string digits = value.integer_part + value.fraction;
  const int64_t scaled = digits.size() > 17 ? INT64_MAX / 16 : std::atoll(digits.c_str());
  return {std::max<int64_t>(scaled, 1), value.fraction.size()};
}

int64_t step(int64_t rest, int64_t digit, const Divisor& divisor) {
  return (rest * 10 + digit) % divisor.scaled;
}

enum Phase { kStart, kMinus, kZero, kBefore, kPoint, kBehind };

// The automaton's state after reading a part of a number's text.
struct Read {
  Phase phase = kStart;
  bool negative = false, nonzero = false, broken = false;  // broken: the number is not an integer
  // Digits before and after the point; `integer_part` counts up to a limit.
  size_t integer_part = 0, behind = 0;
  // Results of comparing the digits so far with each limit, for numbers with as many digits as the
  // limit.
  std::vector<int> orders;
  std::vector<int64_t> rests;  // remainder of the number for each divisor

  std::vector<int64_t> key() const {
    std::vector<int64_t> result = {phase,
                                   negative,
                                   nonzero,
                                   broken,
                                   static_cast<int64_t>(integer_part),
                                   static_cast<int64_t>(behind)};
    result.insert(result.end(), orders.begin(), orders.end());
    result.insert(result.end(), rests.begin(), rests.end());
    return result;
  }
};

class Reading {
 public:
  Reading(const Numbers& set, bool integer_part, bool fractions)
      : set_(set), takes_integers_(integer_part), takes_fractions_(fractions) {
    for (const Decimal& one : set.divisors) divisors_.push_back(divisor_of(one));
    if (divisors_.empty()) counted_ = kMostDigits;
    for (const Divisor& one : divisors_) places_ = std::max(places_, one.places);
    for (const auto& limit : set.limits) {
      places_ = std::max(places_, limit.value.fraction.size());
      counted_ = std::max(counted_, limit.value.integer_part.size() + 1);
    }
  }

  Read start() const {
    Read result;
    result.orders.assign(set_.limits.size(), 0);
    result.rests.assign(divisors_.size(), 0);
    return result;
  }

  std::optional<Read> next(Read at, char c) const {
    if (c == '-') {
      if (at.phase != kStart) return std::nullopt;
      at.phase = kMinus;
      at.negative = true;
      return at;
    }
    if (c == '.') {
      if ((at.phase != kZero && at.phase != kBefore) || !takes_fractions_) return std::nullopt;
      for (size_t i = 0; i < at.orders.size(); ++i) at.orders[i] = order_of_integer(at, i);
      at.phase = kPoint;
      at.integer_part = at.integer_part > kLongestInteger;
      return at;
    }
    const int digit = c - '0';
    if (at.phase == kZero) return std::nullopt;
    return at.phase < kPoint ? before(std::move(at), digit) : behind(std::move(at), digit);
  }

  bool ends(const Read& at) const {
    if (at.phase != kZero && at.phase != kBefore && at.phase != kBehind) return false;
    if ((at.negative && !at.nonzero) || !(at.broken ? takes_fractions_ : takes_integers_))
      return false;
    for (size_t i = 0; i < divisors_.size(); ++i) {
      int64_t rest = at.rests[i];
      for (size_t k = at.behind; k < divisors_[i].places; ++k) rest = step(rest, 0, divisors_[i]);
      if (rest != 0) return false;
    }
    for (size_t i = 0; i < set_.limits.size(); ++i) {
      if (!allows(set_.limits[i].is, order(at, i))) return false;
    }
    return true;
  }

 private:
  std::optional<Read> before(Read at, int digit) const {
    if (divisors_.empty() && at.integer_part == counted_) return std::nullopt;
    at.phase = digit == 0 && at.phase != kBefore ? kZero : kBefore;
    for (size_t i = 0; i < at.orders.size(); ++i) {
      const std::string& integer_part = set_.limits[i].value.integer_part;
      if (at.orders[i] == 0 && at.integer_part < integer_part.size())
        at.orders[i] = sign(digit, integer_part[at.integer_part]);
    }
    for (size_t i = 0; i < divisors_.size(); ++i) {
      at.rests[i] = step(at.rests[i], digit, divisors_[i]);
    }
    at.integer_part = std::min(at.integer_part + 1, counted_);
    at.nonzero = at.nonzero || digit != 0;
    return at;
  }

  std::optional<Read> behind(Read at, int digit) const {
    const size_t most = at.integer_part != 0 ? places_ : std::max(places_, kLongestFraction);
    if (at.behind == most) return std::nullopt;
    at.phase = kBehind;
    for (size_t i = 0; i < at.orders.size(); ++i) {
      const std::string& fraction = set_.limits[i].value.fraction;
      const char other = at.behind < fraction.size() ? fraction[at.behind] : '0';
      if (at.orders[i] == 0) at.orders[i] = sign(digit, other);
    }
    for (size_t i = 0; i < divisors_.size(); ++i) {
      if (at.behind < divisors_[i].places) {
        at.rests[i] = step(at.rests[i], digit, divisors_[i]);
      } else if (digit != 0) {
        return std::nullopt;
      }
    }
    ++at.behind;
    at.broken = at.broken || digit != 0;
    at.nonzero = at.nonzero || digit != 0;
    return at;
  }

  static int sign(int digit, char other) {
    return digit == other - '0' ? 0 : digit < other - '0' ? -1 : 1;
  }

  int order_of_integer(const Read& at, size_t i) const {
    const size_t size = set_.limits[i].value.integer_part.size();
    return at.integer_part == size ? at.orders[i] : at.integer_part < size ? -1 : 1;
  }

  int order(const Read& at, size_t i) const {
    const Decimal& limit = set_.limits[i].value;
    if (at.negative != limit.negative)
      return at.negative ? -1 : sign_of(limit) == 0 && !at.nonzero ? 0 : 1;
    int size = at.phase < kPoint ? order_of_integer(at, i) : at.orders[i];
    if (size == 0 && at.behind < limit.fraction.size()) size = -1;
    return at.negative ? -size : size;
  }

  const Numbers& set_;
  const bool takes_integers_, takes_fractions_;
  std::vector<Divisor> divisors_;
  size_t places_ = 0, counted_ = kLongestInteger + 1;
};

}  // namespace

std::optional<Decimal> decimal_of(const json::Value& value) {
  if (!value.is(Kind::kInt) && !value.is(Kind::kFloat)) return std::nullopt;
  if (value.is(Kind::kFloat) && !(std::abs(value.number()) < kLargest)) return std::nullopt;
  const std::string text = json::to_string(value);
  Decimal decimal;
  decimal.negative = text[0] == '-';
  size_t at = decimal.negative ? 1 : 0;
  std::string digits;
  size_t point = std::string::npos;
  for (; at < text.size() && text[at] != 'e'; ++at) {
    if (text[at] == '.') {
      point = digits.size();
    } else {
      digits += text[at];
    }
  }
  if (point == std::string::npos) point = digits.size();
  int64_t places = static_cast<int64_t>(point);
  if (at < text.size()) places += std::atoi(text.c_str() + at + 1);
  if (places < 0) digits.insert(0, static_cast<size_t>(-places), '0');
  places = std::max<int64_t>(places, 0);
  if (digits.size() < static_cast<size_t>(places))
    digits.append(static_cast<size_t>(places) - digits.size(), '0');
  decimal.integer_part = digits.substr(0, static_cast<size_t>(places));
  decimal.fraction = digits.substr(static_cast<size_t>(places));
  decimal.integer_part.erase(
      0, std::min(decimal.integer_part.find_first_not_of('0'), decimal.integer_part.size()));
  if (decimal.integer_part.empty()) decimal.integer_part = "0";
  const size_t last = decimal.fraction.find_last_not_of('0');
  decimal.fraction.resize(last == std::string::npos ? 0 : last + 1);
  if (decimal.integer_part == "0" && decimal.fraction.empty()) decimal.negative = false;
  return decimal;
}

int compare(const Decimal& a, const Decimal& b) {
  if (sign_of(a) != sign_of(b)) return sign_of(a) < sign_of(b) ? -1 : 1;
  const int sizes = compare_sizes(a, b);
  return a.negative ? -sizes : sizes;
}

bool Numbers::has(const Decimal& value) const {
  const bool within = std::all_of(limits.begin(), limits.end(), [&](const Limit& limit) {
    return allows(limit.is, compare(value, limit.value));
  });
  return within && std::all_of(divisors.begin(), divisors.end(), [&](const Decimal& one) {
           const Divisor divisor = divisor_of(one);
           std::string digits = value.fraction;
           if (digits.size() > divisor.places) return false;
           digits.resize(divisor.places, '0');
           int64_t rest = 0;
           for (const char c : value.integer_part + digits) rest = step(rest, c - '0', divisor);
           return rest == 0;
         });
}

bool Numbers::may_have_any() const {
  for (const Limit& low : limits) {
    if (low.is != Is::kLeast && low.is != Is::kAbove) continue;
    for (const Limit& high : limits) {
      if (high.is != Is::kMost && high.is != Is::kBelow) continue;
      const int order = compare(low.value, high.value);
      const bool closed = low.is == Is::kLeast && high.is == Is::kMost;
      if (order > 0 || (order == 0 && !closed)) return false;
    }
  }
  return true;
}

Automaton Numbers::automaton(bool integer_part, bool fractions, Steps& steps) const {
  const Reading reading(*this, integer_part, fractions);
  Automaton result;
  std::map<std::vector<int64_t>, size_t> places;
  std::vector<Read> order = {reading.start()};
  places.emplace(order[0].key(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    std::map<size_t, CodePoints> edges;
    for (const char c : {'-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}) {
      steps.take(10);
      std::optional<Read> next = reading.next(order[i], c);
      if (!next) continue;
      const auto [place, is_new] = places.emplace(next->key(), order.size());
      if (is_new) order.push_back(std::move(*next));
      CodePoints& set = edges[place->second];
      const auto code = static_cast<char32_t>(c);
      set = joined(std::move(set), {{code, code}});
    }
    result.states.push_back({reading.ends(order[i]), {}});
    for (auto& [to, set] : edges) result.states[i].edges.emplace_back(std::move(set), to);
    if (order.size() > kMostNumberStates) {
      throw NotEnforced("", "what its numbers are held to has too many states");
    }
  }
  result.trim();
  return result;
}

}  // namespace wherry::app
