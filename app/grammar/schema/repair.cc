#include "app/grammar/schema/repair.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/grammar/schema/subschemas.h"
#include "app/grammar/schema/values.h"

namespace wherry::app {

namespace {

using json::Value;
using json::Values;
using Items = std::vector<std::pair<Value, Value>>;

constexpr int kDeepestSeen =
    4;  // upper bound on nested schemas of which llguidance sees that none fits
constexpr const char* kImpossible = "no value is valid here";

// The keywords that have subschemas.
struct Place {
  std::string_view name;
  bool map, list, replaceable;
};
constexpr Place kPlaces[] = {{"properties", true, false, true},
                             {"patternProperties", true, false, true},
                             {"additionalProperties", false, false, true},
                             {"items", false, true, true},
                             {"prefixItems", false, true, true},
                             {"additionalItems", false, false, true},
                             {"anyOf", false, true, true},
                             {"oneOf", false, true, true},
                             {"allOf", false, true, false},
                             {"$defs", true, false, false},
                             {"definitions", true, false, false}};

// Which values a schema's grammar can write.
class Analysis {
 public:
  explicit Analysis(const Value& root) : root_(root), values_(root, steps_, problems_) {
    values_.shapes().leave_formats_out();
    request(root);
    values_.finish();
    ends_ = values_.rules().ends();
  }

  // Whether it is known of each schema which values its grammar can write.
  bool complete() {
    if (!problems_.empty()) return false;
    for (const auto& known : values_.known()) {
      for (const Shape& shape : values_.shapes().of(known.first)) {
        // Names that are not declared count as one, because they might be equal.
        if (shape.least_properties > static_cast<int64_t>(shape.required.size()) + 1) return false;
      }
    }
    return true;
  }
  // Whether no value is valid for a schema of the document.
  bool none(const Value& schema) { return !ends(Shapes::goal_of(schema)); }

  // Returns the places where llguidance would begin what cannot be ended.
  std::vector<std::string> dead_ends() {
    std::vector<std::string> texts;
    for (const auto& [goal, rule] : values_.known()) {
      if (!ends_[rule]) continue;
      for (Shape shape : values_.shapes().of(goal)) {
        shape.types = types_in(shape);
        if (shape.constants) continue;
        if ((shape.types & kObject) != 0) dead_properties(goal, shape, texts);
        if ((shape.types & kList) != 0) dead_items(goal, shape, texts);
      }
    }
    return texts;
  }

 private:
  void request(const Value& schema) {
    if (!schema.is_dict()) return;
    values_.rule(Shapes::goal_of(schema));
    with_parts(schema, [&](const Value& part, bool) {
      request(part);
      return part;
    });
  }

  bool ends(const Goal& goal) {
    const auto known = values_.known().find(values_.shapes().plain(goal));
    return known == values_.known().end() || ends_[known->second];
  }

  void dead_properties(const Goal& goal, const Shape& shape, std::vector<std::string>& into) {
    std::vector<std::string> names = shape.required;
    for (const auto& part : shape.objects) {
      if (part.properties == nullptr) continue;
      for (const auto& item : part.properties->items) names.push_back(item.first.text());
    }
    // llguidance finds out itself that the object as a whole is impossible.
    if (seen_dead(shape, 0)) return;
    for (const std::string& name : names) {
      const Goal property = values_.shapes().property(shape, name);
      if (!ends(property) && !seen_dead(property, 0)) add(goal, "properties." + name, into);
    }
  }

  void dead_items(const Goal& goal, const Shape& shape, std::vector<std::string>& into) {
    size_t first = 1;
    for (const auto& part : shape.lists) {
      if (part.first != nullptr) first = std::max(first, part.first->size() + 1);
    }
    if (seen_dead(shape, 0)) return;
    for (size_t i = 0; i < first; ++i) {
      if (shape.most_items >= 0 && i >= static_cast<size_t>(shape.most_items)) return;
      const Goal item = Shapes::item(shape, i);
      if (ends(item)) continue;
      if (!seen_dead(item, 0)) add(goal, "items", into);
      return;
    }
  }

  // Whether llguidance sees, too, that nothing is valid: by types, not by texts or numbers.
  bool seen_dead(const Goal& goal, int depth) {
    if (depth > kDeepestSeen) return false;
    const auto& shapes = values_.shapes().of(goal);
    return std::all_of(shapes.begin(), shapes.end(),
                       [&](const Shape& shape) { return seen_dead(shape, depth); });
  }

  bool seen_dead(const Shape& shape, int depth) {
    const unsigned types = types_in(shape);
    if (shape.constants) return types == 0;
    if ((types & ~(kList | kObject | kNumber)) != 0) return false;
    if ((types & kNumber) != 0 && shape.numbers.may_have_any()) return false;
    if ((types & kList) != 0 && (shape.most_items < 0 || shape.least_items <= shape.most_items)) {
      bool dead = false;
      for (int64_t i = 0; i < std::min<int64_t>(shape.least_items, 16) && !dead; ++i) {
        dead = seen_dead(Shapes::item(shape, static_cast<size_t>(i)), depth + 1);
      }
      if (!dead) return false;
    }
    if ((types & kObject) == 0) return true;
    return std::any_of(shape.required.begin(), shape.required.end(), [&](const std::string& name) {
      return seen_dead(values_.shapes().property(shape, name), depth + 1);
    });
  }

  void add(const Goal& goal, const std::string& keyword, std::vector<std::string>& into) {
    const Value* schema = goal.empty() ? nullptr : goal.back().schema;
    const bool placed = schema != nullptr && schema->is_dict();
    const std::string place = values_.shapes().place(placed ? schema : &root_, keyword);
    std::string line = place + ": " + kImpossible;
    if (std::find(into.begin(), into.end(), line) == into.end()) into.push_back(std::move(line));
  }

  const Value& root_;
  Steps steps_;
  std::vector<std::string> problems_;
  ValueRules values_;
  std::vector<bool> ends_;
};

Value without_impossible(const Value& schema, Analysis& analysis, bool& changed) {
  return with_parts(schema, [&](const Value& part, bool replaceable) {
    if (replaceable && part.is_dict() && analysis.none(part)) {
      changed = true;
      return Value(false);
    }
    return without_impossible(part, analysis, changed);
  });
}

}  // namespace

Value with_parts(const Value& schema,
                 const std::function<Value(const Value& part, bool replaceable)>& changed) {
  if (!schema.is_dict()) return schema;
  Items fields;
  bool any = false;
  for (const auto& [name, value] : schema.dict().items) {
    fields.emplace_back(name, value);
    const auto place =
        std::find_if(std::begin(kPlaces), std::end(kPlaces),
                     [&name = name](const Place& one) { return one.name == name.text(); });
    if (place == std::end(kPlaces)) continue;
    bool here = false;
    const auto next = [&](const Value& part) {
      Value now = changed(part, place->replaceable);
      here = here || now.kind() != part.kind() || now.object() != part.object();
      return now;
    };
    Value now = value;
    if (value.is_dict() && place->map) {
      Items parts;
      for (const auto& [key, part] : value.dict().items) parts.emplace_back(key, next(part));
      now = json::make_dict(std::move(parts));
    } else if (value.is_dict()) {
      now = next(value);
    } else if (place->list && value.is(json::Kind::kList)) {
      Values parts;
      for (const Value& part : value.items()) parts.push_back(next(part));
      now = json::make_list(std::move(parts));
    }
    if (here) fields.back().second = std::move(now);
    any = any || here;
  }
  // An unchanged schema stays the same object, by which others know it.
  return any ? json::make_dict(std::move(fields)) : schema;
}

Repaired repaired(const Value& schema) {
  try {
    Steps steps;
    Texts texts(steps);
    Repaired result{with_finite_names(schema, texts), {}};
    auto analysis = std::make_unique<Analysis>(result.schema);
    if (!analysis->complete()) return {schema, {}};
    if (analysis->none(result.schema)) return {schema, {kImpossible}};
    bool changed = false;
    Value next = without_impossible(result.schema, *analysis, changed);
    if (changed) {
      result.schema = std::move(next);
      analysis = std::make_unique<Analysis>(result.schema);
      if (!analysis->complete()) return {schema, {}};
    }
    result.problems = analysis->dead_ends();
    return result;
  } catch (const NotEnforced&) {  // other keywords are refused elsewhere, by name
    return {schema, {}};
  }
}

}  // namespace wherry::app
