#include "app/grammar/schema/objects.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

using json::Value;

// Upper bound on patternProperties, each of which doubles the sets of names.
constexpr size_t kMostPatterns = 5;
constexpr size_t kRun = 8;  // number of optional properties per rule
// Upper bound on the letters of excluded names that are spelled out.
constexpr size_t kMostLetters = 80;

struct Named {
  Written pair;
  bool required;
};

// Whether a schema says which properties there are, and nothing about others. Such an object is
// closed, because a model that may add properties might never end.
bool declares(const Shape& shape) {
  const auto possible = [](const auto& item) {
    return !item.second.is(json::Kind::kBool) || item.second.integer() != 0;
  };
  bool any = false;
  for (const auto& part : shape.objects) {
    if (part.others != nullptr) return false;
    any = any || (part.patterns != nullptr && !part.patterns->items.empty());
    if (part.properties == nullptr) continue;
    const auto& items = part.properties->items;
    any = any || items.empty() || std::any_of(items.begin(), items.end(), possible);
  }
  return any;
}

class Objects {
 public:
  Objects(ValueRules& values, const Shape& shape)
      : values_(values),
        rules_(values.rules()),
        shape_(shape),
        counts_(shape.least_properties > 0 || shape.most_properties >= 0),
        closed_(!counts_ && shape.names.empty() && declares(shape)) {
    name_all();
    add_others();
  }

  void add(size_t rule) {
    rules_.either(rule, Written{"\"{\"", {}} + from({0, 0, 0}));
    while (!open_.empty()) {
      const auto [state, at] = open_.front();
      open_.pop_front();
      write(state, at);
    }
  }

 private:
  // The state of a partial object: the numbers of declared properties passed, of declared ones
  // written, and of other properties.
  using State = std::tuple<size_t, int64_t, int64_t>;

  void name_all() {
    std::vector<std::string> names;
    const auto name = [&](const std::string& one) {
      if (std::find(names.begin(), names.end(), one) == names.end()) names.push_back(one);
    };
    for (const auto& part : shape_.objects) {
      if (part.properties == nullptr) continue;
      for (const auto& item : part.properties->items) name(item.first.text());
    }
    for (const std::string& one : shape_.required) name(one);
    for (const std::string& one : names) {
      const auto& required = shape_.required;
      const bool must = std::find(required.begin(), required.end(), one) != required.end();
      literals_.push_back(one);
      Written pair = {quoted(json::to_json(Value(one)) + ": "), {}};
      pair = values_.shapes().fits(Value(one), shape_.names)
                 ? pair + values_.rule(values_.shapes().property(shape_, one))
                 // The property refers to an empty rule, because it has no valid value.
                 : pair + rules_.ref(rules_.add());
      if (must || !pair_is_none(one)) named_.push_back({std::move(pair), must});
    }
  }

  bool pair_is_none(const std::string& name) {
    const Goal goal = values_.shapes().property(shape_, name);
    return std::any_of(goal.begin(), goal.end(), [](const Literal& one) {
      return one.kind == Literal::kFits && one.schema != nullptr &&
             one.schema->is(json::Kind::kBool) && one.schema->integer() == 0;
    });
  }

  // Adds rules for undeclared names, partitioned by the patterns that they match; each set of names
  // has its own schema.
  void add_others() {
    std::vector<std::string> patterns;
    for (const auto& part : shape_.objects) {
      if (part.patterns == nullptr) continue;
      for (const auto& item : part.patterns->items) {
        const std::string& text = item.first.text();
        if (std::find(patterns.begin(), patterns.end(), text) == patterns.end())
          patterns.push_back(text);
      }
    }
    if (patterns.size() > kMostPatterns)
      throw NotEnforced("patternProperties",
                        "it has more than " + std::to_string(kMostPatterns) + " patterns");
    for (size_t fits = closed_ ? 1 : 0; fits < size_t{1} << patterns.size(); ++fits) {
      const auto is = [&](const std::string& text) {
        const auto at = std::find(patterns.begin(), patterns.end(), text) - patterns.begin();
        return (fits >> at & 1) != 0;
      };
      const Goal goal = goal_of(is);
      if (!values_.shapes().may_fit(goal)) continue;
      Texts& sets = values_.sets();
      std::vector<Texts::Id> all = {undeclared(), values_.text_set(names_goal())};
      for (const std::string& text : patterns) {
        const Texts::Id set = values_.shapes().pattern(text);
        all.push_back(is(text) ? set : sets.without(set));
      }
      const Texts::Id set = sets.both(std::move(all));
      if (set == sets.none()) continue;
      others_.push_back(Written{"\"\\\"\"", {}} + values_.texts().of(set, {"\"\\\": \"", {}}) +
                        values_.rule(goal));
    }
  }

  Goal names_goal() const {
    Goal goal = shape_.names;
    goal.push_back({Literal::kFits, nullptr, kText});
    return goal;
  }

  template <typename Is>
  Goal goal_of(const Is& is) const {
    Goal goal;
    for (const auto& part : shape_.objects) {
      bool matched = false;
      for (size_t i = 0; part.patterns != nullptr && i < part.patterns->items.size(); ++i) {
        const auto& [text, schema] = part.patterns->items[i];
        if (!is(text.text())) continue;
        goal.push_back({Literal::kFits, &schema});
        matched = true;
      }
      if (!matched) goal.push_back({Literal::kFits, part.others});
    }
    return goal;
  }

  // Returns the set of all names except the declared ones; if there are many of those, it also
  // excludes all names with their prefixes.
  Texts::Id undeclared() {
    Texts& sets = values_.sets();
    size_t letters = 0;
    for (const std::string& one : literals_) letters += unicode::count_code_points(one);
    std::vector<Texts::Id> all;
    for (size_t most = 64;; most /= 2) {
      std::vector<std::string> heads;
      size_t sum = 0;
      for (const std::string& one : literals_) {
        std::string head =
            letters > kMostLetters ? one.substr(0, unicode::byte_of(one, most)) : one;
        if (std::find(heads.begin(), heads.end(), head) != heads.end()) continue;
        sum += unicode::count_code_points(head);
        heads.push_back(std::move(head));
      }
      if (letters > kMostLetters && sum > kMostLetters && most > 1) continue;
      for (const std::string& head : heads) {
        const Texts::Id set = sets.literal(head);
        all.push_back(letters > kMostLetters && !head.empty() ? sets.concat(set, sets.all()) : set);
      }
      return sets.without(sets.either(std::move(all)));
    }
  }

  Written from(State state) {
    auto& [passed, written, others] = state;
    const int64_t most = shape_.most_properties, least = shape_.least_properties;
    if (most < 0) {
      written = std::min(written, std::max<int64_t>(counts_ ? least : 0, 1));
      others = std::min<int64_t>(others, 1);
    }
    const auto [known, is_new] = known_.emplace(state, 0);
    if (is_new) {
      known->second = rules_.add();
      open_.emplace_back(state, known->second);
    }
    return rules_.ref(known->second);
  }

  void write(const State& state, size_t rule) {
    const auto& [passed, written, others] = state;
    const Written comma = {written + others > 0 ? "\", \"" : "", {}};
    const bool full = shape_.most_properties >= 0 && written + others >= shape_.most_properties;
    if (passed < named_.size()) {
      for (size_t i = passed; i < named_.size() && i < passed + kRun; ++i) {
        if (!full) rules_.either(rule, comma + named_[i].pair + from({i + 1, written + 1, others}));
        if (named_[i].required) return;
      }
      return rules_.either(rule, from({std::min(passed + kRun, named_.size()), written, others}));
    }
    // Two undeclared properties may have the same name, so they count as one for the minimum and as
    // two for the maximum.
    if (written + std::min<int64_t>(others, 1) >= shape_.least_properties)
      rules_.either(rule, {"\"}\"", {}});
    if (full) return;
    for (const Written& one : others_)
      rules_.either(rule, comma + one + from({passed, written, others + 1}));
  }

  ValueRules& values_;
  RuleSet& rules_;
  const Shape& shape_;
  const bool counts_;
  const bool closed_;  // whether no other names may be written, although the schema allows them
  std::vector<std::string> literals_;
  std::vector<Named> named_;
  std::vector<Written> others_;
  std::map<State, size_t> known_;
  std::deque<std::pair<State, size_t>> open_;
};

}  // namespace

void add_objects(ValueRules& values, size_t rule, const Shape& shape) {
  for (const Value& value : shape.excluded) {
    if (value.is_dict()) throw NotEnforced("not", "an object cannot be left out");
  }
  if (shape.most_properties >= 0 && shape.least_properties > shape.most_properties) return;
  Objects(values, shape).add(rule);
}

}  // namespace wherry::app
