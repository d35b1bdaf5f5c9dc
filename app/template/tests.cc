// Implements the tests of templates, which follow `is`.
#include <cmath>

#include "app/template/functions.h"
#include "app/template/operators.h"
#include "app/template/runtime.h"
#include "app/template/text_pieces.h"

namespace wherry::jinja {

namespace {

template <Kind... kinds>
bool of_kind(Runtime&, const Value& value, const Arguments&) {
  return (value.is(kinds) || ...);
}

bool defined(Runtime&, const Value& value, const Arguments&) { return !value.is(Kind::kUndefined); }

template <int64_t rest>
bool modulo(Runtime& runtime, const Value& value, const Arguments&) {
  return equal(binary(runtime.budget(), "%", value, Value(2)), Value(rest));
}

bool divisibleby(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"num"});
  return equal(binary(runtime.budget(), "%", value, *arguments[0]), Value(0));
}

template <bool meant>
bool is_bool(Runtime&, const Value& value, const Arguments&) {
  return value.is(Kind::kBool) && (value.integer() != 0) == meant;
}

bool number(Runtime&, const Value& value, const Arguments&) { return value.is_number(); }

bool callable(Runtime&, const Value& value, const Arguments&) {
  return value.is(Kind::kFunction) || value.is(Kind::kLoop) || value.is(Kind::kUndefined);
}

bool sequence(Runtime&, const Value& value, const Arguments&) {
  return has_length(value) && !value.is(Kind::kView) && !value.is(Kind::kLoop);
}

bool iterable(Runtime&, const Value& value, const Arguments&) {
  return has_length(value) || value.is(Kind::kIterator);
}

bool sameas(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"other"});
  const Value& other = *arguments[0];
  if (value.kind() != other.kind()) return false;
  if (value.is_none()) return true;
  if (value.is_integer()) return value.integer() == other.integer();
  return value.object() == other.object() && value.object() != nullptr;
}

template <bool (*holds)(std::string_view)>
bool of_text(Runtime&, const Value& value, const Arguments&) {
  return holds(to_string(value));
}

bool within(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"seq"});
  return contains(*arguments[0], value);
}

constexpr char kEqual[] = "==", kUnequal[] = "!=", kLess[] = "<", kAtMost[] = "<=", kMore[] = ">",
               kAtLeast[] = ">=";

template <const char* sign>
bool compares(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"other"});
  return compared(runtime.budget(), sign, value, *arguments[0]);
}

bool is_filter(Runtime&, const Value& value, const Arguments&) {
  hash_of(value);  // fails for lists, as Python's hash does
  return value.is_string() && find_filter(value.text()) != nullptr;
}

bool is_test(Runtime&, const Value& value, const Arguments&) {
  hash_of(value);
  return value.is_string() && find_test(value.text()) != nullptr;
}

bool is_escaped(Runtime&, const Value& value, const Arguments&) { return value.is_markup(); }

constexpr Test kTests[] = {
    {"!=", compares<kUnequal>},
    {"<", compares<kLess>},
    {"<=", compares<kAtMost>},
    {"==", compares<kEqual>},
    {">", compares<kMore>},
    {">=", compares<kAtLeast>},
    {"boolean", of_kind<Kind::kBool>},
    {"callable", callable},
    {"defined", defined},
    {"divisibleby", divisibleby},
    {"eq", compares<kEqual>},
    {"equalto", compares<kEqual>},
    {"escaped", is_escaped},
    {"even", modulo<0>},
    {"false", is_bool<false>},
    {"filter", is_filter},
    {"float", of_kind<Kind::kFloat>},
    {"ge", compares<kAtLeast>},
    {"greaterthan", compares<kMore>},
    {"gt", compares<kMore>},
    {"in", within},
    {"integer", of_kind<Kind::kInt>},
    {"iterable", iterable},
    {"le", compares<kAtMost>},
    {"lessthan", compares<kLess>},
    {"lower", of_text<all_lower>},
    {"lt", compares<kLess>},
    {"mapping", of_kind<Kind::kDict>},
    {"ne", compares<kUnequal>},
    {"none", of_kind<Kind::kNone>},
    {"number", number},
    {"odd", modulo<1>},
    {"sameas", sameas},
    {"sequence", sequence},
    {"string", of_kind<Kind::kString>},
    {"test", is_test},
    {"true", is_bool<true>},
    {"undefined", of_kind<Kind::kUndefined>},
    {"upper", of_text<all_upper>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  for (const Test& row : kTests) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace wherry::jinja
