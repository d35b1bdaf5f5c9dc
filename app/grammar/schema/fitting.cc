// Decides whether a value is valid for a schema, and whether a schema has any valid value.
#include <algorithm>
#include <cmath>

#include "app/grammar/schema/shapes.h"

namespace wherry::app {

namespace {

using json::Kind;
using json::Value;
using json::Values;

constexpr int kDeepestProof = 6;  // upper bound on nested schemas in a proof that no value is valid

// The error for a reference that leads back to itself.
struct Circle : NotEnforced {
  using NotEnforced::NotEnforced;
};

}  // namespace

// Returns the choices of `oneOf`: each alternative, minus those others that may be valid for the
// same value.
const Shapes::Choice& Shapes::one_of(const Value& list, const std::string& where) {
  const json::Object* const key = list.object().get();
  const auto known = one_of_.find(key);
  if (known != one_of_.end()) return known->second;
  const Expansion expansion(open_, key);
  if (expansion.circular()) throw Circle(where, "it is needed to read itself");
  Choice choice;
  const Values& parts = list.items();
  for (const Value& one : parts) choice.push_back({{Literal::kFits, &one}});
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      steps_.take(20);
      if (!may_fit({{Literal::kFits, &parts[i]}, {Literal::kFits, &parts[j]}})) continue;
      for (const auto& [one, other] : {std::pair(i, j), std::pair(j, i)}) {
        try {
          negated(parts[other]);
        } catch (const NotEnforced& problem) {
          throw NotEnforced(
              where,
              std::to_string(j) + " and " + std::to_string(i) +
                  " may both be valid; use anyOf, or give them a required property with another "
                  "constant each");
        }
        choice[one].push_back({Literal::kNot, &parts[other]});
      }
    }
  }
  return one_of_.emplace(key, std::move(choice)).first->second;
}

bool Shapes::may_fit(const Goal& goal, int depth) {
  if (depth > kDeepestProof) return true;
  try {
    for (const Shape& shape : of(goal)) {
      if (may_have(shape, depth)) return true;
    }
  } catch (const Circle&) {
    return true;
  }
  return false;
}

bool Shapes::may_have(const Shape& shape, int depth) {
  steps_.take(10);
  if (shape.constants) {
    return std::any_of(shape.constants->begin(), shape.constants->end(),
                       [&](const Value& one) { return fits(one, shape); });
  }
  if ((shape.types & (kNull | kTrue | kFalse)) != 0) return true;
  if ((shape.types & kNumber) != 0 && shape.numbers.may_have_any()) return true;
  if ((shape.types & kText) != 0 && texts_.both(shape.texts) != texts_.none()) return true;
  if ((shape.types & kList) != 0 &&
      (shape.most_items < 0 || shape.least_items <= shape.most_items)) {
    // Index after the items that have schemas of their own.
    size_t first = shape.least_items > 0 ? 1 : 0;
    for (const auto& part : shape.lists) {
      if (part.first != nullptr) first = std::max(first, part.first->size() + 1);
    }
    first = std::min(first, static_cast<size_t>(shape.least_items));
    bool all = true;
    for (size_t i = 0; all && i < first; ++i) all = may_fit(item(shape, i), depth + 1);
    if (all) return true;
  }
  if ((shape.types & kObject) == 0) return false;
  if (shape.most_properties >= 0 && shape.least_properties > shape.most_properties) return false;
  return std::all_of(shape.required.begin(), shape.required.end(), [&](const std::string& name) {
    return may_fit(property(shape, name), depth + 1);
  });
}

Goal Shapes::item(const Shape& shape, size_t at) {
  Goal goal;
  for (const auto& part : shape.lists) {
    const bool first = part.first != nullptr && at < part.first->size();
    goal.push_back({Literal::kFits, first ? &(*part.first)[at] : part.rest});
  }
  return goal;
}

Goal Shapes::property(const Shape& shape, const std::string& name) {
  Goal goal;
  for (const auto& part : shape.objects) {
    const Value* named =
        part.properties == nullptr ? nullptr : part.properties->find(std::string_view(name));
    bool matched = named != nullptr;
    if (matched) goal.push_back({Literal::kFits, named});
    for (size_t i = 0; part.patterns != nullptr && i < part.patterns->items.size(); ++i) {
      const auto& [text, schema] = part.patterns->items[i];
      if (!texts_.has(pattern(text.text()), name)) continue;
      goal.push_back({Literal::kFits, &schema});
      matched = true;
    }
    if (!matched) goal.push_back({Literal::kFits, part.others});
  }
  return goal;
}

bool Shapes::fits(const Value& value, const Goal& goal) {
  const std::vector<Shape>& all = of(goal);
  return std::any_of(all.begin(), all.end(), [&](const Shape& one) { return fits(value, one); });
}

bool Shapes::fits(const Value& value, const Shape& shape) {
  const size_t compared = (shape.constants ? shape.constants->size() : 0) + shape.excluded.size() +
                          shape.numbers.limits.size();
  steps_.take(4 + compared / 8);
  const unsigned type = type_of(value);
  const auto is = [&](const Value& other) { return same(value, other); };
  if ((shape.types & type) == 0) return false;
  if (shape.constants && std::none_of(shape.constants->begin(), shape.constants->end(), is))
    return false;
  if (std::any_of(shape.excluded.begin(), shape.excluded.end(), is)) return false;
  if ((type & kNumber) != 0) {
    if (shape.numbers.limits.empty() && shape.numbers.divisors.empty()) return true;
    const auto number = decimal_of(value);
    return number && shape.numbers.has(*number);
  }
  if (type == kText) {
    return std::all_of(shape.texts.begin(), shape.texts.end(),
                       [&](Texts::Id one) { return texts_.has(one, value.text()); });
  }
  if (type == kList) {
    const Values& items = value.items();
    const auto count = static_cast<int64_t>(items.size());
    if (count < shape.least_items || (shape.most_items >= 0 && count > shape.most_items))
      return false;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!fits(items[i], item(shape, i))) return false;
      for (size_t j = 0; shape.unique != nullptr && j < i; ++j) {
        if (same(items[i], items[j])) return false;
      }
    }
  }
  if (type == kObject) {
    const auto& items = value.dict().items;
    const auto count = static_cast<int64_t>(items.size());
    if (count < shape.least_properties ||
        (shape.most_properties >= 0 && count > shape.most_properties))
      return false;
    for (const std::string& name : shape.required) {
      if (value.dict().find(std::string_view(name)) == nullptr) return false;
    }
    for (const auto& [name, one] : items) {
      if (!fits(one, property(shape, name.text())) || !fits(name, shape.names)) return false;
    }
  }
  return true;
}
}  // namespace wherry::app
