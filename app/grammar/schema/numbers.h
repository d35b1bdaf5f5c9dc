// Sets of numbers, given by bounds, divisors and excluded values, in exact decimal arithmetic.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_NUMBERS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_NUMBERS_H_

#include <optional>
#include <string>
#include <vector>

#include "app/grammar/schema/automaton.h"
#include "app/grammar/schema/steps.h"
#include "app/value/value.h"

namespace wherry::app {

struct Decimal {
  bool negative = false;
  std::string integer_part = "0";  // digits before the decimal point, without leading zeros
  std::string fraction;            // digits after the decimal point, without trailing zeros
};

// Converts a JSON number. Returns nothing if the value is not a number, or is beyond 2^63, where
// the original text is lost.
std::optional<Decimal> decimal_of(const json::Value& value);
// Returns a negative number, 0 or a positive number.
int compare(const Decimal& a, const Decimal& b);

struct Numbers {
  enum class Is { kLeast, kAbove, kMost, kBelow, kNot };
  struct Limit {
    Is is;
    Decimal value;
  };
  std::vector<Limit> limits;
  std::vector<Decimal> divisors;

  bool has(const Decimal& value) const;
  // Returns false if the set is provably empty.
  bool may_have_any() const;
  // Returns an automaton that accepts the texts of the numbers: no exponent, no "-0", few digits
  // after the decimal point. Throws NotEnforced if there are too many states. fractions: accept
  // non-integers; whole: accept integers.
  Automaton automaton(bool integer_part, bool fractions, Steps& steps) const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_NUMBERS_H_
