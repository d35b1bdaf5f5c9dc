#include "app/template/globals.h"

#include <ctime>

#include "app/template/budget.h"
#include "app/template/operators.h"
#include "app/value/code_points.h"

namespace wherry::jinja {

namespace {

constexpr int64_t kLongestRange = 100'000;
// Upper bound on the characters of a template's error message to the client.
constexpr size_t kLongestError = 1000;
constexpr size_t kLongestDate = 200;

Value range(Budget&, const Arguments& given) {
  const Bound arguments(given, {"start", "stop=", "step="});
  auto result = std::make_shared<Range>();
  const bool one = arguments[1] == nullptr;
  result->start = one ? 0 : to_integer(*arguments[0]);
  result->stop = to_integer(one ? *arguments[0] : *arguments[1]);
  result->step = arguments[2] ? to_integer(*arguments[2]) : 1;
  if (result->step == 0) fail("the step of a range is 0");
  constexpr int64_t kFar = int64_t{1} << 62;
  const bool far =
      result->start > kFar || result->start < -kFar || result->stop > kFar || result->stop < -kFar;
  if (far || result->length() > kLongestRange) {
    fail("a range has at most " + std::to_string(kLongestRange) + " numbers");
  }
  return Value(Kind::kRange, std::move(result));
}

// Returns the keyword arguments of dict(...) or namespace(...).
std::vector<std::pair<Value, Value>> fields(Budget& budget, const Arguments& given) {
  std::vector<std::pair<Value, Value>> pairs;
  if (given.positional.size() > 1) fail("dict takes one value");
  for (const Value& from : given.positional) {
    if (from.is_dict()) {
      pairs = from.dict().items;
      continue;
    }
    use(from);
    for (const Value& pair : budget.listed(from)) {
      const Values parts = budget.listed(pair);
      if (parts.size() != 2) fail("dict takes pairs");
      pairs.emplace_back(parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : given.named) pairs.emplace_back(name, value);
  return pairs;
}

Value dict(Budget& budget, const Arguments& given) { return make_dict(fields(budget, given)); }

Value make_namespace(Budget& budget, const Arguments& given) {
  auto result = std::make_shared<Namespace>();
  for (auto& [name, value] : fields(budget, given)) {
    result->set(to_string(name), value);
  }
  return Value(Kind::kNamespace, std::move(result));
}

Value raise_exception(Budget&, const Arguments& given) {
  const Bound arguments(given, {"message"});
  const std::string text = to_string(*arguments[0]);
  fail(text.substr(0, byte_of(text, kLongestError)));
}

Value strftime_now(Budget&, const Arguments& given) {
  const Bound arguments(given, {"pattern"});
  const Value& pattern = *arguments[0];
  use(pattern);
  if (!pattern.is_string()) fail("strftime_now takes a text");
  if (pattern.chars() > kLongestDate) {
    fail("it has a date of " + std::to_string(pattern.chars()) + " characters");
  }
  const std::time_t now = std::time(nullptr);
  std::tm local{};
#if defined(_WIN32)
  localtime_s(&local, &now);
#else
  localtime_r(&now, &local);
#endif
  std::string result(4096, '\0');
  // The leading space distinguishes an empty date from one that is too long, because strftime
  // returns 0 for both.
  result.resize(
      std::strftime(result.data(), result.size(), (" " + pattern.text()).c_str(), &local));
  if (result.empty()) fail("it has a date of great width");
  return Value(well_formed(std::string_view(result).substr(1)));
}

// Returns an object whose next() returns its items one after the other, in a cycle.
Value cycler(Budget&, const Arguments& given) {
  if (given.positional.empty()) fail("cycler takes at least one value");
  auto at = std::make_shared<size_t>(0);
  auto result = std::make_shared<Function>();
  result->type = "Cycler";
  result->name = "cycler";
  result->call = [](Budget&, const Arguments&) -> Value { fail("a cycler is not called"); };
  const Values items = given.positional;
  result->attributes = {
      {"next", make_function("next",
                             [at, items](Budget&, const Arguments&) {
                               const Value item = items[*at];
                               *at = (*at + 1) % items.size();
                               return item;
                             })},
      {"reset", make_function("reset",
                              [at](Budget&, const Arguments&) {
                                *at = 0;
                                return Value();
                              })},
      {"items", make_tuple(items)},
  };
  return Value(Kind::kFunction, std::move(result));
}

Value joiner(Budget&, const Arguments& given) {
  const Bound arguments(given, {"sep="});
  auto used = std::make_shared<bool>(false);
  const Value separator = arguments.or_else(0, Value(", "));
  return make_function("joiner", [used, separator](Budget&, const Arguments&) {
    if (*used) return separator;
    *used = true;
    return Value("");
  });
}

std::vector<std::pair<Value, Value>> table() {
  using Run = Value (*)(Budget&, const Arguments&);
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto& [name, run] :
       std::initializer_list<std::pair<const char*, Run>>{{"range", range},
                                                          {"dict", dict},
                                                          {"namespace", make_namespace},
                                                          {"raise_exception", raise_exception},
                                                          {"strftime_now", strftime_now},
                                                          {"cycler", cycler},
                                                          {"joiner", joiner}}) {
    pairs.emplace_back(name, make_function(name, run));
  }
  return pairs;
}

}  // namespace

const Dict& globals() {
  static const Value kGlobals = make_dict(table());
  return kGlobals.dict();
}

bool is_global(std::string_view name) { return globals().find(name) != nullptr; }

}  // namespace wherry::jinja
