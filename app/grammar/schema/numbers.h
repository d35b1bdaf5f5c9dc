// Sets of numbers: bounds, divisors and excluded values, in exact decimal arithmetic.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_NUMBERS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_NUMBERS_H_

#include <optional>
#include <string>
#include <vector>

#include "app/grammar/schema/automaton.h"
#include "app/grammar/schema/steps.h"
#include "app/template/value.h"

namespace wherry::app {

struct Decimal {
  bool negative = false;
  std::string whole = "0";  // without leading zeros
  std::string fraction;     // without trailing zeros
};

// Returns nothing if the value is not a number, or is beyond 2^63, where the original text is lost.
std::optional<Decimal> decimal_of(const jinja::Value& value);
int compare(const Decimal& a, const Decimal& b);  // negative, 0 or positive

struct Numbers {
  enum class Is { kLeast, kAbove, kMost, kBelow, kNot };
  struct Limit {
    Is is;
    Decimal value;
  };
  std::vector<Limit> limits;
  std::vector<Decimal> divisors;

  bool has(const Decimal& value) const;
  // False if the set is provably empty.
  bool may_have_any() const;
  // Accepts the texts of the numbers: no exponent, no "-0", few digits after the decimal point.
  // Throws NotEnforced if there are too many states. fractions: accepts non-integers; whole:
  // accepts integers.
  Automaton automaton(bool whole, bool fractions, Steps& steps) const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_NUMBERS_H_
