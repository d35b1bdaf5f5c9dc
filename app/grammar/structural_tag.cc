#include "app/grammar/structural_tag.h"

#include <algorithm>
#include <map>
#include <vector>

#include "app/grammar/ebnf_rules.h"
#include "app/grammar/schema_audit.h"
#include "app/request/request_error.h"

namespace wherry::app {

namespace {

using json::Value;
using json::Values;

[[noreturn]] void refuse(const std::string& param, const std::string& problem) {
  throw RequestError(param + ": " + problem, param);
}

const Values* list_of(const Value& value, const char* name) {
  const Value* match = value.is_dict() ? value.dict().find(name) : nullptr;
  return match != nullptr && match->is(json::Kind::kList) ? &match->items() : nullptr;
}

const Values& structures_of(const Value& value, const std::string& param) {
  const Values* matches = list_of(value, "structures");
  if (matches == nullptr || matches->empty() || list_of(value, "triggers") == nullptr) {
    refuse(param,
           "a structural tag takes {\"structures\": [{\"begin\": ..., \"schema\": ..., \"end\": "
           "...}], \"triggers\": [...]}");
  }
  if (!std::all_of(matches->begin(), matches->end(), [](const Value& v) { return v.is_dict(); })) {
    refuse(param, "structures takes objects");
  }
  return *matches;
}

std::vector<std::string> triggers_of(const Value& value, const std::string& param) {
  std::vector<std::string> texts;
  for (const Value& one : *list_of(value, "triggers")) {
    if (!one.is_string() || one.text().empty()) texts.clear();
    if (!one.is_string() || one.text().empty()) break;
    texts.push_back(one.text());
  }
  if (texts.size() != list_of(value, "triggers")->size() || texts.empty()) {
    refuse(param, "triggers takes texts that are not empty");
  }
  return texts;
}

}  // namespace

Constraint structural_tag(const Value& value, const std::string& param,
                          const Tokenizer& tokenizer) {
  const Values& structures = structures_of(value, param);
  const std::vector<std::string> triggers = triggers_of(value, param);
  EbnfRules rules(tokenizer, triggers);
  std::vector<std::vector<std::string>> tags(triggers.size());
  for (size_t i = 0; i < structures.size(); ++i) {
    const std::string where = "structures[" + std::to_string(i) + "]";
    const json::Dict& tag = structures[i].dict();
    const Value* begin = tag.find("begin");
    const Value* end = tag.find("end");
    if (begin == nullptr || !begin->is_string() || begin->text().empty() ||
        (end != nullptr && !end->is_string())) {
      refuse(param, where + " takes 'begin' and 'end', texts");
    }
    size_t trigger = 0;
    while (trigger < triggers.size() &&
           begin->text().compare(0, triggers[trigger].size(), triggers[trigger]) != 0) {
      ++trigger;
    }
    if (trigger == triggers.size()) {
      refuse(param,
             where + ".begin is " + json::repr_text(begin->text()) + ", which no trigger begins");
    }
    const Value* schema = tag.find("schema");
    const Value given = schema == nullptr ? json::make_dict({}) : *schema;
    check_schema(given, param);
    const std::string rest = begin->text().substr(triggers[trigger].size());
    tags[trigger].push_back(
        (rest.empty() ? "" : quoted(rest) + " ") + rules.json(given, given) +
        (end == nullptr || end->text().empty() ? "" : " " + quoted(end->text())));
  }
  std::vector<std::pair<std::string, std::string>> rests;
  for (size_t i = 0; i < triggers.size(); ++i) {
    if (!tags[i].empty()) rests.emplace_back(triggers[i], rules.either(tags[i]));
  }
  const std::string root = rules.amid_text(rests, true);
  return std::move(rules).constraint(root, param);
}

}  // namespace wherry::app
