// Creates grammar rules for the values of each type.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_VALUES_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_VALUES_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "app/grammar/rules.h"
#include "app/grammar/schema/shapes.h"
#include "app/grammar/schema/written.h"

namespace wherry::app {

// Adds a problem to the list. place: the path to use if the problem has none.
void note(const NotEnforced& problem, std::vector<std::string>& into,
          const std::string& place = "");

// Returns the set of types of a shape's values.
unsigned types_in(const Shape& shape);

class ValueRules {
 public:
  // problems: gets the keywords that cannot be enforced.
  ValueRules(const json::Value& root, Steps& steps, std::vector<std::string>& problems)
      : steps_(steps),
        problems_(problems),
        sets_(steps),
        shapes_(root, sets_, steps),
        rules_(steps),
        texts_(sets_, rules_, WrittenTexts::As::kJson) {}

  // Returns the grammar of a goal's values; "" if there are none.
  std::string all(const Goal& goal);
  // Creates the rules that others refer to.
  void finish();
  // Returns the rules of the goals that were asked for.
  const std::map<Goal, size_t>& known() const { return known_; }
  // Returns a reference to the rule of a goal's values; the rule itself is created later.
  Written rule(const Goal& goal);
  // Returns the set of texts that satisfy a goal.
  Texts::Id text_set(const Goal& goal);

  Shapes& shapes() { return shapes_; }
  Texts& sets() { return sets_; }
  RuleSet& rules() { return rules_; }
  WrittenTexts& texts() { return texts_; }

 private:
  void add(size_t rule, Shape shape);
  void add_constants(size_t rule, const Shape& shape);
  void add_numbers(size_t rule, const Shape& shape);
  Texts::Id text_set(const Shape& shape);
  // Runs `work` and records its problem, so that one error reports the problems of all places.
  template <typename Work>
  void guarded(const Work& work, const std::string& place = "") {
    try {
      work();
    } catch (const NotEnforced& problem) {
      note(problem, problems_, place);
      steps_.take();
    }
  }

  Steps& steps_;
  std::vector<std::string>& problems_;
  Texts sets_;
  Shapes shapes_;
  RuleSet rules_;
  WrittenTexts texts_;
  std::map<Goal, size_t> known_;
  std::deque<const std::pair<const Goal, size_t>*> open_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_VALUES_H_
