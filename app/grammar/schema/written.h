// Grammar rules under construction, and sets of texts and numbers in the grammar's notation.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_WRITTEN_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_WRITTEN_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "app/grammar/schema/texts.h"

namespace wherry::app {

// An expression together with the rules that it uses.
struct Written {
  std::string text;
  std::vector<size_t> needs;
};
Written operator+(Written a, const Written& b);  // concatenates two expressions

// A set of numbered rules. Rules that never terminate or match nothing are removed.
class RuleSet {
 public:
  explicit RuleSet(Steps& steps) : steps_(steps) {}
  size_t add();
  void either(size_t rule, Written alternative);
  Written ref(size_t rule) const;
  // Returns for each rule whether it terminates.
  std::vector<bool> ends() const { return reached().ends; }
  // Returns the grammar whose first rule, `root`, is this rule; "" if it matches nothing.
  std::string text(size_t root);

 private:
  struct Reached {
    std::vector<bool> ends;                    // for each rule, whether it terminates
    std::vector<std::vector<size_t>> missing;  // for each alternative, its rules that do not
  };
  Reached reached() const;

  Steps& steps_;
  std::vector<std::vector<Written>> rules_;
};

// Writes sets of texts as grammar rules, escaped as in a JSON string or plain. The expression that
// follows a part of a text is inside that part's rules, so that the mask of a token that extends
// beyond the part can be precomputed.
class WrittenTexts {
 public:
  enum class As { kJson, kPlain };
  WrittenTexts(Texts& texts, RuleSet& rules, As as) : texts_(texts), rules_(rules), as_(as) {}

  // Returns an expression that matches all texts of the set, each followed by `rest`.
  Written of(Texts::Id set, Written rest);
  // Adds an alternative to a rule: a character of the set, followed by `rest`.
  void either(size_t rule, const CodePoints& set, const Written& rest);

 private:
  Written chars(const CodePoints& set, Written rest);
  Written repeated(const Texts::Node& node, Written rest);
  Written any_times(Texts::Id part, Written rest);
  Written times(Texts::Id part, int32_t count, Written rest);
  Written at_most(Texts::Id part, int32_t count, Written rest);
  Written blocks(Texts::Id part, int32_t count, int32_t others, Written rest);
  // Makes a rule of an expression, so that several places can refer to it.
  Written named(Written rest);
  // Returns the rule that `make` fills on first use.
  template <typename Make>
  Written known(const char* what, Texts::Id set, int32_t count, const Written& rest, Make make);

  Texts& texts_;
  RuleSet& rules_;
  const As as_;
  std::map<std::tuple<std::string, Texts::Id, int32_t, std::string>, size_t> known_;
};

// Creates the rules of an automaton; `rest` follows each text that it accepts. either(rule, set,
// rest): adds an alternative with a character of the set, followed by the next state's rule.
template <typename Either>
Written written(const Automaton& automaton, RuleSet& rules, const Written& rest, Either either) {
  std::vector<size_t> states;
  for (size_t i = 0; i < automaton.states.size(); ++i) states.push_back(rules.add());
  if (states.empty()) states.push_back(rules.add());
  for (size_t i = 0; i < automaton.states.size(); ++i) {
    for (const auto& [set, to] : automaton.states[i].edges) {
      either(states[i], set, rules.ref(states[to]));
    }
    if (automaton.states[i].ends) rules.either(states[i], rest);
  }
  return rules.ref(states[0]);
}

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_WRITTEN_H_
