#include "app/grammar/schema/schema_grammar.h"

#include <algorithm>
#include <set>

#include "app/grammar/schema/lists.h"
#include "app/grammar/schema/objects.h"
#include "app/grammar/schema/subschemas.h"
#include "app/grammar/schema/values.h"
#include "app/value/json_text.h"

namespace wherry::app {

using json::Value;

Written ValueRules::rule(const Goal& goal) {
  Goal plain = shapes_.plain(goal);
  const auto [known, is_new] = known_.emplace(std::move(plain), 0);
  if (is_new) {
    known->second = rules_.add();
    open_.push_back(&*known);
  }
  return rules_.ref(known->second);
}

std::string ValueRules::all(const Goal& goal) {
  const Written root = rule(goal);
  finish();
  return rules_.text(root.needs[0]);
}

void ValueRules::finish() {
  while (!open_.empty()) {
    const auto* next = open_.front();
    open_.pop_front();
    guarded([&] {
      for (const Shape& shape : shapes_.of(next->first)) guarded([&] { add(next->second, shape); });
    });
  }
}

unsigned types_in(const Shape& shape) {
  if (shape.constants) {
    unsigned result = 0;
    for (const Value& one : *shape.constants) result |= type_of(one);
    return result & shape.types;
  }
  // A schema without `type` is taken to mean the types that its keywords apply to.
  return shape.types == kAnyType && shape.mentioned != 0 ? shape.mentioned : shape.types;
}

void ValueRules::add(size_t rule, Shape shape) {
  shape.types = types_in(shape);
  if (shape.constants) return add_constants(rule, shape);
  for (const auto& [type, text] :
       {std::pair(kNull, "null"), std::pair(kTrue, "true"), std::pair(kFalse, "false")}) {
    if ((shape.types & type) != 0) rules_.either(rule, {quoted(text), {}});
  }
  if ((shape.types & kNumber) != 0 && shape.numbers.may_have_any()) {
    guarded([&] { add_numbers(rule, shape); }, shape.numbers_at);
  }
  if ((shape.types & kText) != 0) {
    const std::string quote = "\"\\\"\"";
    guarded(
        [&] { rules_.either(rule, Written{quote, {}} + texts_.of(text_set(shape), {quote, {}})); },
        shape.texts_at);
  }
  if ((shape.types & kList) != 0) guarded([&] { add_lists(*this, rule, shape); });
  if ((shape.types & kObject) != 0) guarded([&] { add_objects(*this, rule, shape); });
}

void ValueRules::add_constants(size_t rule, const Shape& shape) {
  for (const Value& value : *shape.constants) {
    if (!shapes_.fits(value, shape)) continue;
    const std::string text = json::to_json(value), compact = json::to_compact_json(value);
    rules_.either(rule, {quoted(text), {}});
    if (compact != text) rules_.either(rule, {quoted(compact), {}});
  }
}

void ValueRules::add_numbers(size_t rule, const Shape& shape) {
  const bool integers = (shape.types & kInteger) != 0, broken = (shape.types & kBroken) != 0;
  if (integers && shape.numbers.limits.empty() && shape.numbers.divisors.empty()) {
    // Digits are bounded, so that a number ends: doubles have 17.
    const std::string integer = "\"-\"? (\"0\" | [1-9] [0-9]{0,18})";
    const std::string rest = " (\".\" [0-9]{1,17})? ([eE] [+\\-]? [0-9]{1,3})?";
    rules_.either(rule, {broken ? integer + rest : integer, {}});
    return;
  }
  const auto either = [&](size_t state, const CodePoints& set, const Written& rest) {
    std::string result = "[";
    for (const auto& [low, high] : set) {
      for (char32_t code = low; code <= high; ++code) {
        result += (code == '-' ? "\\" : "") + std::string(1, static_cast<char>(code));
      }
    }
    rules_.either(state, Written{result + "]", {}} + rest);
  };
  rules_.either(rule, written(shape.numbers.automaton(integers, broken, steps_), rules_,
                              {"\"\"", {}}, either));
}

Texts::Id ValueRules::text_set(const Shape& shape) {
  std::vector<Texts::Id> all = shape.texts, without;
  for (const Value& value : shape.excluded) {
    if (value.is_string()) without.push_back(sets_.literal(value.text()));
  }
  all.push_back(sets_.without(sets_.either(std::move(without))));
  return sets_.both(std::move(all));
}

Texts::Id ValueRules::text_set(const Goal& goal) {
  std::vector<Texts::Id> all;
  for (const Shape& shape : shapes_.of(goal)) {
    if (shape.constants) {
      for (const Value& value : *shape.constants) {
        if (value.is_string() && shapes_.fits(value, shape))
          all.push_back(sets_.literal(value.text()));
      }
    } else if ((shape.types & kText) != 0) {
      all.push_back(text_set(shape));
    }
  }
  return sets_.either(std::move(all));
}

SchemaGrammar schema_grammar(const Value& schema, const Value& root) {
  SchemaGrammar grammar;
  try {
    Steps steps;
    Texts texts(steps);
    const bool integers = schema.object() == root.object();
    const Value finite = integers ? with_finite_names(root, texts) : root;
    ValueRules rules(finite, steps, grammar.problems);
    const Value* meta_schema = root.is_dict() ? root.dict().find("$schema") : nullptr;
    const bool known =
        meta_schema == nullptr ||
        (meta_schema->is_string() && meta_schema->text().find("://json-schema.org/draft") < 6);
    if (!known) grammar.problems.emplace_back("$schema");
    grammar.rules = rules.all(Shapes::goal_of(integers ? finite : schema));
  } catch (const NotEnforced& problem) {
    note(problem, grammar.problems);
  }
  return grammar;
}

PlainTexts plain_texts(const Value& schema, const Value& root, const std::string& end) {
  Steps steps;
  std::vector<std::string> problems;
  ValueRules values(root, steps, problems);
  unsigned types = 0;
  for (const Shape& shape : values.shapes().of(Shapes::goal_of(schema))) types |= types_in(shape);
  const bool alone = types == kText;
  if ((types & kText) == 0) return {PlainTexts::Are::kNone, false, ""};
  Texts& sets = values.sets();
  const Texts::Id all = values.text_set(Shapes::goal_of(schema));
  if (all == sets.all()) return {PlainTexts::Are::kAll, alone, ""};
  const Texts::Id with_end = sets.concat(sets.all(), sets.concat(sets.literal(end), sets.all()));
  RuleSet rules(steps);
  const Written some =
      WrittenTexts(sets, rules, WrittenTexts::As::kPlain)
          .of(end.empty() ? all : sets.both({all, sets.without(with_end)}), {"\"\"", {}});
  const size_t first = rules.add();
  rules.either(first, some);
  return {PlainTexts::Are::kSome, alone, rules.text(first)};
}

void note(const NotEnforced& problem, std::vector<std::string>& into, const std::string& place) {
  std::string line = problem.place().empty() ? place : problem.place();
  if (*problem.what() != '\0') line += std::string(": ") + problem.what();
  if (std::find(into.begin(), into.end(), line) == into.end()) into.push_back(std::move(line));
}

}  // namespace wherry::app
