#include "app/request/fields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/request/request_error.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

constexpr size_t kShown = 20;         // problems in an error
constexpr size_t kLongestPath = 200;  // characters: a path has names from the client

std::string shown(double value) {
  const bool is_integer = value == std::floor(value) && std::fabs(value) < 1e18;
  return is_integer ? std::to_string(static_cast<int64_t>(value)) : json::float_text(value);
}

// Parses a number, or a whole number, from a text; returns nothing if the text is none.
std::optional<double> parsed(const std::string& text, bool is_integer) {
  if (text.empty()) return std::nullopt;
  const char* kept = is_integer ? "+-0123456789" : "+-0123456789.eE";
  if (text.find_first_not_of(kept) != text.npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

std::string item(const std::string& list, size_t i) { return list + "[" + std::to_string(i) + "]"; }

void Checker::add(const std::string& path, const std::string& problem) {
  std::string where = path;
  if (where.size() > kLongestPath) where.resize(unicode::byte_of(where, kLongestPath));
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
  const auto outside = [&](const char* rule, double limit) {
    add(where, std::string("takes a number ") + rule + " " + shown(limit));
    return false;
  };
  if (bounds.at_most && value > *bounds.at_most) return outside("of at most", *bounds.at_most);
  if (bounds.below && value >= *bounds.below) return outside("below", *bounds.below);
  if (bounds.at_least && value < *bounds.at_least) return outside("of at least", *bounds.at_least);
  if (bounds.above && value <= *bounds.above) return outside("above", *bounds.above);
  return true;
}

std::optional<Value> Checker::integer(const std::string& where, const Value& value,
                                      const Bounds& bounds) {
  std::optional<double> match;
  if (value.is_number()) match = value.number();
  if (value.is_string()) match = parsed(value.text(), true);
  if (!match || *match != std::floor(*match) || std::isinf(*match)) {
    add(where, "takes a whole number");
    return std::nullopt;
  }
  if (!within(where, *match, bounds)) return std::nullopt;
  if (value.is_integer()) return Value(value.integer());
  return std::fabs(*match) < 9.2e18 ? Value(static_cast<int64_t>(*match)) : Value(*match);
}

std::optional<Value> Checker::number(const std::string& where, const Value& value,
                                     const Bounds& bounds) {
  std::optional<double> match;
  if (value.is_number()) match = value.number();
  if (value.is_string()) match = parsed(value.text(), false);
  if (!match || !std::isfinite(*match)) {
    add(where, "takes a number");
    return std::nullopt;
  }
  return within(where, *match, bounds) ? std::optional<Value>(Value(*match)) : std::nullopt;
}

std::optional<Value> Checker::boolean(const std::string& where, const Value& value) {
  if (value.is(json::Kind::kBool)) return value;
  if (value.is_number() && (value.number() == 0 || value.number() == 1)) {
    return Value(value.number() == 1);
  }
  std::string word = value.is_string() ? value.text() : "";
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; });
  for (const char* yes : {"true", "t", "yes", "y", "on", "1"}) {
    if (word == yes) return Value(true);
  }
  for (const char* no : {"false", "f", "no", "n", "off", "0"}) {
    if (word == no) return Value(false);
  }
  add(where, "takes true or false");
  return std::nullopt;
}

std::optional<Value> Checker::text(const std::string& where, const Value& value, size_t longest,
                                   size_t shortest) {
  if (!value.is_string()) {
    add(where, "takes a text");
  } else if (longest > 0 && value.chars() > longest) {
    add(where, "takes at most " + std::to_string(longest) + " characters");
  } else if (value.chars() < shortest) {
    add(where, "takes a text that is not empty");
  } else {
    return value;
  }
  return std::nullopt;
}

bool Checker::list(const std::string& where, const Value& value) {
  if (value.is(json::Kind::kList)) return true;
  add(where, "takes a list");
  return false;
}

bool Checker::object(const std::string& where, const Value& value) {
  if (value.is_dict()) return true;
  add(where, "takes an object");
  return false;
}

bool Checker::few(const std::string& where, const Value& value, size_t limit) {
  const size_t count = value.is_sequence() ? value.items().size()
                       : value.is_dict()   ? value.dict().items.size()
                                           : 0;
  if (count <= limit) return true;
  add(where, "has " + std::to_string(count) + " items; at most " + std::to_string(limit) +
                 " are accepted");
  return false;
}

const Value* Fields::find(std::string_view name) const {
  const Value* match = object_.dict().find(name);
  return match == nullptr || match->is_none() ? nullptr : match;
}

std::optional<double> Fields::number(std::string_view name) const {
  const Value* match = find(name);
  return match ? std::optional<double>(match->number()) : std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view name) const {
  const Value* match = find(name);
  return match ? std::optional<int64_t>(match->integer()) : std::nullopt;
}

bool Fields::truth(std::string_view name) const {
  const Value* match = find(name);
  return match != nullptr && json::truth(*match);
}

std::string Fields::text(std::string_view name) const {
  const Value* match = find(name);
  return match != nullptr && match->is_string() ? match->text() : "";
}

}  // namespace wherry::app
