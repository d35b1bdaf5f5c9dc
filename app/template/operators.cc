#include "app/template/operators.h"

#include <algorithm>
#include <cmath>

#include "app/value/code_points.h"

namespace wherry::jinja {

namespace {

constexpr int kBits = 63;

[[noreturn]] void unsupported(const std::string& sign) {
  fail(sign + " does not take these values");
}

[[noreturn]] void too_large() {
  fail("it makes a number of more than " + std::to_string(kBits) + " bits");
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) {
    if (a == INT64_MIN) too_large();
    return -a;
  }
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Value of_integers(const std::string& sign, int64_t a, int64_t b);

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("division by zero");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  if (base == 0 || base == 1) return Value(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Value(exponent % 2 ? int64_t{-1} : int64_t{1});
  if (exponent > kBits) fail("it takes a number to the power of " + std::to_string(exponent));
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) too_large();
  }
  return Value(result);
}

Value of_integers(const std::string& sign, int64_t a, int64_t b) {
  int64_t result = 0;
  bool over = false;
  if (sign == "+") {
    over = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    over = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    over = __builtin_mul_overflow(a, b, &result);
  } else if (sign == "**") {
    return power(a, b);
  } else if (sign == "/") {
    if (b == 0) fail("division by zero");
    return Value(static_cast<double>(a) / static_cast<double>(b));
  } else {
    if (b == 0) fail("division by zero");
    result = sign == "//" ? floor_div(a, b) : b == -1 ? 0 : a - floor_div(a, b) * b;
  }
  if (over) too_large();
  return Value(result);
}

Value of_floats(const std::string& sign, double a, double b) {
  if (sign == "+") return Value(a + b);
  if (sign == "-") return Value(a - b);
  if (sign == "*") return Value(a * b);
  if (sign == "**") {
    if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
      fail("it makes a complex number");
    }
    const double result = std::pow(a, b);
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
      if (a == 0) fail("division by zero");
      fail("a number is too large");
    }
    return Value(result);
  }
  if (b == 0) fail("division by zero");
  if (sign == "/") return Value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (sign == "%") return Value(rest == 0 ? std::copysign(0.0, b) : rest);
  return Value(std::round((a - rest) / b));
}

bool repeats(const Value& value) { return value.is_string() || value.is_sequence(); }

Value repeated(Budget& budget, const Value& value, int64_t times) {
  const size_t count = times > 0 ? static_cast<size_t>(times) : 0;
  const size_t size = size_of(value);
  if (size != 0 && count > SIZE_MAX / 2 / size) budget.check(SIZE_MAX / 2);
  budget.check(size * count);
  if (value.is_string()) {
    std::string result;
    if (value.text().empty()) return Value(result);
    result.reserve(value.text().size() * count);
    for (size_t i = 0; i < count; ++i) result += value.text();
    return like(value, std::move(result));
  }
  Values result;
  if (value.items().empty()) return value.is(Kind::kList) ? make_list({}) : make_tuple({});
  for (size_t i = 0; i < count; ++i) {
    result.insert(result.end(), value.items().begin(), value.items().end());
  }
  return value.is(Kind::kList) ? make_list(std::move(result)) : make_tuple(std::move(result));
}

Value added(Budget& budget, const Value& a, const Value& b) {
  if (a.is_string()) {
    if (!b.is_string()) fail("+ does not take these values");
    budget.check(a.chars() + b.chars());
    if (a.is_markup() || b.is_markup()) return Value::markup(escaped(a) + escaped(b));
    return Value(a.text() + b.text());
  }
  if (!a.is_sequence()) unsupported("+");
  if (a.kind() != b.kind()) fail("+ does not take these values");
  budget.check(size_of(a) + size_of(b));
  Values values = a.items();
  values.insert(values.end(), b.items().begin(), b.items().end());
  return a.is(Kind::kList) ? make_list(std::move(values)) : make_tuple(std::move(values));
}

Value computed(Budget& budget, const std::string& sign, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return of_integers(sign, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return of_floats(sign, a.number(), b.number());
  if (sign == "%" && a.is_string()) {
    return like(a, percent(budget, a.text(), b, a.is_markup()));
  }
  use(a);
  use(b);
  if (sign == "+") return added(budget, a, b);
  if (sign == "*") {
    if (repeats(a) && b.is_integer()) return repeated(budget, a, b.integer());
    if (repeats(b) && a.is_integer()) return repeated(budget, b, a.integer());
  }
  unsupported(sign);
}

}  // namespace

Value binary(Budget& budget, const std::string& sign, const Value& a, const Value& b) {
  return budget.charged(computed(budget, sign, a, b));
}

Value negative(const Value& value) {
  use(value);
  if (value.is(Kind::kFloat)) return Value(-value.number());
  if (!value.is_integer()) fail("- takes a number");
  if (value.integer() == INT64_MIN) too_large();
  return Value(-value.integer());
}

Value positive(const Value& value) {
  use(value);
  if (value.is(Kind::kFloat)) return value;
  if (!value.is_integer()) fail("+ takes a number");
  return Value(value.integer());
}

bool contains(const Value& all, const Value& one) {
  if (all.is_string()) {
    if (!one.is_string()) fail("a text holds texts alone");
    return all.text().find(one.text()) != std::string::npos;
  }
  if (all.is_dict()) return all.dict().find(one) != nullptr;
  if (all.is(Kind::kView) && all.as<View>().part == 'k') {
    return all.as<View>().of.dict().find(one) != nullptr;
  }
  if (all.is(Kind::kRange)) {
    const auto& range = all.as<Range>();
    if (!one.is_number() || one.number() != std::floor(one.number())) return false;
    const auto value = static_cast<int64_t>(one.number());
    const bool inside = range.step > 0 ? value >= range.start && value < range.stop
                                       : value <= range.start && value > range.stop;
    return inside && (value - range.start) % range.step == 0;
  }
  const Kind kind = all.kind();
  if (!all.is_sequence() && kind != Kind::kUndefined && kind != Kind::kView &&
      kind != Kind::kIterator && kind != Kind::kLoop) {
    fail("in takes a text, a list or a mapping");
  }
  Next next = iterate(all);
  for (Value match; next(match);) {
    if (equal(match, one)) return true;
  }
  return false;
}

bool compared(Budget& budget, const std::string& sign, const Value& a, const Value& b) {
  budget.step(std::min(size_of(a), size_of(b)));
  if (sign == "==") return equal(a, b);
  if (sign == "!=") return !equal(a, b);
  if (sign == "in") return contains(b, a);
  if (sign == "not in") return !contains(b, a);
  const int order = compare(a, b, sign.c_str());
  if (sign == "<") return order < 0;
  if (sign == "<=") return order <= 0;
  return sign == ">" ? order > 0 : order >= 0;
}

int64_t to_integer(const Value& value) {
  use(value);
  if (!value.is_integer()) fail("a function takes a whole number");
  return value.integer();
}

namespace {

int64_t bound(const Value& value, int64_t otherwise, int64_t length, int64_t low, int64_t high) {
  if (value.is_none()) return otherwise;
  if (!value.is_integer()) fail("the ends of a slice are whole numbers");
  const int64_t at = value.integer();
  return std::clamp(at < 0 ? at + length : at, low, high);
}

}  // namespace

Value slice(const Value& value, const Value& start, const Value& stop, const Value& step) {
  use(value);
  if (value.is_dict()) fail("a mapping has no slices");
  const bool range = value.is(Kind::kRange);
  if (!value.is_string() && !value.is_sequence() && !range) fail("the value has no items");
  const int64_t length = length_of(value);
  const int64_t by = bound(step, 1, 0, INT64_MIN / 4, INT64_MAX / 4);
  if (by == 0) fail("the step of a slice is 0");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? length : length - 1;
  const int64_t from = bound(start, by > 0 ? low : high, length, low, high);
  const int64_t to = bound(stop, by > 0 ? high : low, length, low, high);
  if (value.is_string() && by == 1) {
    if (from >= to) return Value("");
    const std::string_view text = value.text();
    const bool ascii = text.size() == value.chars();
    const size_t begin = ascii ? static_cast<size_t>(from) : byte_of(text, from);
    const std::string_view rest = text.substr(begin);
    return like(value, std::string(rest.substr(0, ascii ? to - from : byte_of(rest, to - from))));
  }
  if (range) {
    const auto& all = value.as<Range>();
    auto result = std::make_shared<Range>();
    result->start = all.start + from * all.step;
    result->stop = all.start + to * all.step;
    result->step = all.step * by;
    return Value(Kind::kRange, std::move(result));
  }
  Values items;
  if (value.is_string()) {
    Next next = iterate(value);
    for (Value one; next(one);) items.push_back(one);
  }
  const Values& all = value.is_string() ? items : value.items();
  Values result;
  for (int64_t i = from; by > 0 ? i < to : i > to; i += by) {
    result.push_back(all[static_cast<size_t>(i)]);
  }
  if (value.is(Kind::kList)) return make_list(std::move(result));
  if (value.is(Kind::kTuple)) return make_tuple(std::move(result));
  std::string text;
  for (const Value& one : result) text += one.text();
  return like(value, std::move(text));
}

namespace {

Value missing(const Value& name) {
  return undefined_because((name.is_string() ? name.text() : "an item") + " is not there");
}

// Evaluates value[key]; returns nothing where Python raises TypeError or LookupError.
std::optional<Value> subscript(const Value& value, const Value& key) {
  if (value.is_dict()) {
    if (key.is(Kind::kList) || key.is_dict() || key.is(Kind::kView)) return std::nullopt;
    const Value* match = value.dict().find(key);
    return match ? std::optional<Value>(*match) : std::nullopt;
  }
  if (!key.is_integer()) return std::nullopt;
  if (!value.is_string() && !value.is_sequence() && !value.is(Kind::kRange)) return std::nullopt;
  const int64_t length = length_of(value);
  const int64_t at = key.integer() < 0 ? key.integer() + length : key.integer();
  if (at < 0 || at >= length) return std::nullopt;
  if (value.is_sequence()) return value.items()[static_cast<size_t>(at)];
  if (value.is(Kind::kRange)) return Value(value.as<Range>().start + at * value.as<Range>().step);
  return slice(value, Value(at), Value(at + 1), Value());
}

bool is_internal(const std::string& name) {
  return name.size() > 4 && name.compare(0, 2, "__") == 0 &&
         name.compare(name.size() - 2, 2, "__") == 0;
}

std::optional<Value> attribute_or_item(const Value& value, const std::string& name) {
  const bool internal = is_internal(name);
  std::optional<Value> match;
  if (!internal) match = method_of(value, name);
  if (internal || (match && name[0] == '_')) {
    return undefined_because(name + " is not for templates");
  }
  return match;
}

}  // namespace

Value attribute(const Value& value, const Value& name) {
  if (name.text() != "__class__") use(value);  // even undefined values have the attribute __class__
  if (std::optional<Value> match = attribute_or_item(value, name.text())) return *match;
  if (std::optional<Value> match = subscript(value, name)) return *match;
  return missing(name);
}

Value item(const Value& value, const Value& key) {
  use(value);
  if (std::optional<Value> match = subscript(value, key)) return *match;
  if (key.is_string()) {
    if (std::optional<Value> match = attribute_or_item(value, key.text())) return *match;
  }
  return missing(key);
}

}  // namespace wherry::jinja
