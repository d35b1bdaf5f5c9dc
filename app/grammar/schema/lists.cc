#include "app/grammar/schema/lists.h"

#include <algorithm>
#include <map>
#include <optional>

#include "app/value/json_text.h"

namespace wherry::app {

namespace {

using json::Value;
using json::Values;

constexpr size_t kMostSets = 1100;  // upper bound on the states of a list with unique items
constexpr size_t kMostValues = 60;  // upper bound on distinct values of a list with unique items

const Written kOpen = {"\"[\"", {}}, kClose = {"\"]\"", {}};

std::string comma(bool first) { return first ? "" : "\", \""; }

std::string times(int64_t from, int64_t to) {
  return "{" + std::to_string(from) + "," + (to < 0 ? "" : std::to_string(to)) + "}";
}

// Returns all valid values of a goal, each once; nothing if they are unknown or too many.
std::optional<Values> values_of(Shapes& shapes, const Goal& goal) {
  Values values;
  for (const Shape& shape : shapes.of(goal)) {
    Values some = shape.constants.value_or(Values{Value(), true, false});
    if (!shape.constants && (shape.types & ~(kNull | kTrue | kFalse)) != 0) return std::nullopt;
    for (Value& one : some) {
      const auto is = [&](const Value& other) { return same(one, other); };
      if (shapes.fits(one, shape) && std::none_of(values.begin(), values.end(), is))
        values.push_back(std::move(one));
    }
    if (values.size() > kMostValues) return std::nullopt;
  }
  return values;
}

// Generates rules for lists of unique values in any order.
class Different {
 public:
  Different(ValueRules& values, const Shape& shape, Values all)
      : rules_(values.rules()), shape_(shape), all_(std::move(all)) {}

  Written from(uint64_t used, int64_t count) {
    const auto [known, is_new] = known_.emplace(used, 0);
    if (!is_new) return rules_.ref(known->second);
    if (known_.size() > kMostSets)
      throw NotEnforced("", "it has too many lists of its values; give it a smaller maxItems");
    const size_t rule = known->second = rules_.add();
    if (count >= shape_.least_items) rules_.either(rule, kClose);
    if (shape_.most_items >= 0 && count >= shape_.most_items) return rules_.ref(rule);
    for (size_t i = 0; i < all_.size(); ++i) {
      if ((used >> i & 1) != 0) continue;
      const Written item = {comma(count == 0), {}};
      rules_.either(rule, item + Written{quoted(json::to_json(all_[i])), {}} +
                              from(used | uint64_t{1} << i, count + 1));
    }
    return rules_.ref(rule);
  }

 private:
  RuleSet& rules_;
  const Shape& shape_;
  const Values all_;
  std::map<uint64_t, size_t> known_;
};

size_t first_items(const Shape& shape) {
  size_t result = 0;
  for (const auto& part : shape.lists) {
    if (part.first != nullptr) result = std::max(result, part.first->size());
  }
  return result;
}

// Whether the items differ in any case: all have their own schemas, no two of which share a valid
// value.
bool differ_anyway(Shapes& shapes, const Shape& shape) {
  size_t count = first_items(shape);
  if (shape.most_items >= 0) {
    count = std::min(count, static_cast<size_t>(shape.most_items));
    if (shape.most_items > static_cast<int64_t>(count) &&
        shapes.may_fit(Shapes::item(shape, count)))
      return false;
  } else if (shapes.may_fit(Shapes::item(shape, count))) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      Goal both = Shapes::item(shape, i);
      const Goal other = Shapes::item(shape, j);
      both.insert(both.end(), other.begin(), other.end());
      if (shapes.may_fit(both)) return false;
    }
  }
  return true;
}

bool add_different(ValueRules& values, size_t rule, const Shape& shape) {
  Shapes& shapes = values.shapes();
  if (shape.unique == nullptr || (shape.most_items >= 0 && shape.most_items <= 1) ||
      differ_anyway(shapes, shape))
    return false;
  const std::string place = shapes.place(shape.unique, "uniqueItems");
  const auto all =
      first_items(shape) > 0 ? std::nullopt : values_of(shapes, Shapes::item(shape, 0));
  if (!all) throw NotEnforced(place, "its items have to be of few values (enum), or maxItems 1");
  try {
    values.rules().either(rule, kOpen + Different(values, shape, *all).from(0, 0));
  } catch (const NotEnforced& problem) {
    throw NotEnforced(place, problem.what());
  }
  return true;
}

}  // namespace

void add_lists(ValueRules& values, size_t rule, const Shape& shape) {
  const int64_t least = shape.least_items, most = shape.most_items;
  if (most >= 0 && least > most) return;
  for (const Value& value : shape.excluded) {
    if (value.is(json::Kind::kList)) throw NotEnforced("not", "a list cannot be left out");
  }
  if (add_different(values, rule, shape)) return;
  RuleSet& rules = values.rules();
  const auto first = static_cast<int64_t>(first_items(shape));
  size_t at = rules.add();
  rules.either(rule, kOpen + rules.ref(at));
  for (int64_t i = 0; i < first; ++i) {
    if (i >= least) rules.either(at, kClose);
    if (most >= 0 && i >= most) return;
    const size_t next = rules.add();
    rules.either(at, Written{comma(i == 0), {}} +
                         values.rule(Shapes::item(shape, static_cast<size_t>(i))) +
                         rules.ref(next));
    at = next;
  }
  if (first >= least) rules.either(at, kClose);
  int64_t from = std::max<int64_t>(least - first, 1), to = most < 0 ? -1 : most - first;
  if (to == 0) return;
  const Written item = values.rule(Shapes::item(shape, static_cast<size_t>(first)));
  const size_t more = rules.add();
  rules.either(more, Written{comma(false), {}} + item);
  Written all = rules.ref(more);
  if (first == 0) {
    --from;
    if (to > 0) --to;
    if (to != 0) all.text += times(from, to);
    // A list that may end after this item needs an alternative of its own, because the rule for the
    // rest may match nothing.
    rules.either(at, to == 0 ? item + kClose : item + all + kClose);
    return;
  }
  all.text += times(from, to);
  rules.either(at, all + kClose);
}

}  // namespace wherry::app
