#include "app/chat/fields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/chat/request_error.h"

namespace wherry::app {

namespace {

constexpr size_t kShown = 20;

std::string shown(double value) {
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e18;
  return whole ? std::to_string(static_cast<int64_t>(value)) : jinja::float_text(value);
}

// A number in a text, as a whole or not; nothing if it is none.
std::optional<double> parsed(const std::string& text, bool whole) {
  if (text.empty()) return std::nullopt;
  const char* kept = whole ? "+-0123456789" : "+-0123456789.eE";
  if (text.find_first_not_of(kept) != text.npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

void Checker::add(const std::string& where, const std::string& problem) {
  for (const auto& [known, text] : problems_) {
    if (known == where) return;
  }
  problems_.emplace_back(where, problem);
}

void Checker::add_all(const Checker& other) {
  for (const auto& [where, problem] : other.problems_) add(where, problem);
}

void Checker::raise() const {
  if (problems_.empty()) return;
  const bool several = problems_.size() > 1;
  std::string message = several ? std::to_string(problems_.size()) + " problems:" : "";
  for (size_t i = 0; i < problems_.size() && i < kShown; ++i) {
    const auto& [where, problem] = problems_[i];
    message +=
        std::string(several ? "\n  - " : "") + (where.empty() ? "request" : where) + ": " + problem;
  }
  if (problems_.size() > kShown) {
    message += "\n  ... and " + std::to_string(problems_.size() - kShown) + " more";
  }
  throw RequestError(message, problems_[0].first);
}

bool Checker::within(const std::string& where, double value, const Bounds& bounds) {
  const char* rule = nullptr;
  double limit = 0;
  const auto check = [&](const std::optional<double>& bound, bool fits, const char* words) {
    if (rule != nullptr || !bound || fits) return;
    rule = words;
    limit = *bound;
  };
  check(bounds.at_most, bounds.at_most && value <= *bounds.at_most, "less than or equal to ");
  check(bounds.below, bounds.below && value < *bounds.below, "less than ");
  check(bounds.at_least, bounds.at_least && value >= *bounds.at_least, "greater than or equal to ");
  check(bounds.above, bounds.above && value > *bounds.above, "greater than ");
  if (rule == nullptr) return true;
  add(where, "Input should be " + std::string(rule) + shown(limit));
  return false;
}

std::optional<Value> Checker::integer(const std::string& where, const Value& value,
                                      const Bounds& bounds) {
  std::optional<double> found;
  Value made = value;
  if (value.is_integer()) {
    found = static_cast<double>(value.integer());
    made = Value(value.integer());
  } else if (value.is(jinja::Kind::kFloat)) {
    const double number = value.number();
    if (!std::isfinite(number)) {
      add(where, "Input should be a finite number");
      return std::nullopt;
    }
    if (number != std::floor(number)) {
      add(where, "Input should be a valid integer, got a number with a fractional part");
      return std::nullopt;
    }
    found = number;
    if (std::fabs(number) < 9.2e18) made = Value(static_cast<int64_t>(number));
  } else if (value.is_string()) {
    found = parsed(value.text(), true);
    if (!found) {
      add(where, "Input should be a valid integer, unable to parse string as an integer");
      return std::nullopt;
    }
    made = Value(static_cast<int64_t>(*found));
  } else {
    add(where, "Input should be a valid integer");
    return std::nullopt;
  }
  return within(where, *found, bounds) ? std::optional<Value>(made) : std::nullopt;
}

std::optional<Value> Checker::number(const std::string& where, const Value& value,
                                     const Bounds& bounds) {
  double found = 0;
  if (value.is_number()) {
    found = value.number();
  } else if (value.is_string()) {
    const std::optional<double> read = parsed(value.text(), false);
    if (!read) {
      add(where, "Input should be a valid number, unable to parse string as a number");
      return std::nullopt;
    }
    found = *read;
  } else {
    add(where, "Input should be a valid number");
    return std::nullopt;
  }
  if (!std::isfinite(found)) {
    add(where, "Input should be a finite number");
    return std::nullopt;
  }
  return within(where, found, bounds) ? std::optional<Value>(Value(found)) : std::nullopt;
}

std::optional<Value> Checker::boolean(const std::string& where, const Value& value) {
  if (value.is(jinja::Kind::kBool)) return value;
  if (value.is_number() && (value.number() == 0 || value.number() == 1)) {
    return Value(value.number() == 1);
  }
  if (!value.is_string() && !value.is_number()) {
    add(where, "Input should be a valid boolean");
    return std::nullopt;
  }
  std::string word = value.is_string() ? value.text() : "";
  std::transform(word.begin(), word.end(), word.begin(), [](char c) { return c | 0x20; });
  for (const char* yes : {"true", "t", "yes", "y", "on"}) {
    if (word == yes) return Value(true);
  }
  for (const char* no : {"false", "f", "no", "n", "off"}) {
    if (word == no) return Value(false);
  }
  if (value.is_string() && (value.text() == "1" || value.text() == "0")) {
    return Value(value.text() == "1");
  }
  add(where, "Input should be a valid boolean, unable to interpret input");
  return std::nullopt;
}

std::optional<Value> Checker::text(const std::string& where, const Value& value, size_t longest,
                                   size_t shortest) {
  const auto counted = [](size_t count) {
    return std::to_string(count) + (count == 1 ? " character" : " characters");
  };
  if (!value.is_string()) {
    add(where, "Input should be a valid string");
  } else if (longest > 0 && value.chars() > longest) {
    add(where, "String should have at most " + counted(longest));
  } else if (value.chars() < shortest) {
    add(where, "String should have at least " + counted(shortest));
  } else {
    return value;
  }
  return std::nullopt;
}

bool Checker::list(const std::string& where, const Value& value) {
  if (value.is(jinja::Kind::kList)) return true;
  add(where, "Input should be a valid list");
  return false;
}

bool Checker::object(const std::string& where, const Value& value, const char* model) {
  if (value.is_dict()) return true;
  std::string problem = "Input should be a valid dictionary";
  if (model != nullptr) problem += std::string(" or instance of ") + model;
  add(where, problem);
  return false;
}

bool Checker::few(const std::string& where, const Value& value, size_t limit, const char* what) {
  const size_t count = value.is_sequence() ? value.items().size()
                       : value.is_dict()   ? value.dict().items.size()
                                           : 0;
  if (count <= limit) return true;
  add(where,
      std::to_string(count) + " " + what + "; at most " + std::to_string(limit) + " are accepted");
  return false;
}

const Value* Fields::find(std::string_view name) const {
  const Value* found = object_.dict().find(name);
  return found == nullptr || found->is_none() ? nullptr : found;
}

std::optional<double> Fields::number(std::string_view name) const {
  const Value* found = find(name);
  return found ? std::optional<double>(found->number()) : std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view name) const {
  const Value* found = find(name);
  return found ? std::optional<int64_t>(found->integer()) : std::nullopt;
}

bool Fields::truth(std::string_view name) const {
  const Value* found = find(name);
  return found != nullptr && jinja::truth(*found);
}

std::string Fields::text(std::string_view name) const {
  const Value* found = find(name);
  return found ? found->text() : "";
}

}  // namespace wherry::app
