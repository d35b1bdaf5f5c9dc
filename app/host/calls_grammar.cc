#include "app/host/calls_grammar.h"

#include <algorithm>
#include <optional>

#include "app/chat/call_rules.h"
#include "app/chat/enforcement.h"
#include "app/host/lark_rules.h"
#include "app/tools/custom_calls.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

constexpr const char* kBase = "wherry_base";  // the rule of the request's own constraint

Value list_of(const std::set<size_t>& indices) {
  Values list;
  for (const size_t index : indices) list.push_back(Value::size(index));
  return json::make_list(std::move(list));
}

// One chat's requirements, see ChatTools::requirements.
class Chat {
 public:
  explicit Chat(const Value& chat) : chat_(chat), several_(json::truth(field("several"))) {
    if (!field("family").is_none()) family_ = &family_named(field("family").text());
    if (const Values& marks = field("thoughts").is_none() ? Values() : field("thoughts").items();
        !marks.empty()) {
      thoughts_ = Thoughts{marks.at(0).text(), marks.at(1).text()};
    }
    for (const auto& [name, id] : field("special").dict().items) {
      special_.emplace_back(name.text(), static_cast<int32_t>(id.integer()));
    }
  }

  std::string written() {
    const CallRules calls = call_rules();
    LarkRules rules(special_, parts_);
    const Enforcement enforcement(family_, thoughts_, json::truth(field("opened")), rules);
    const bool must = json::truth(field("must")), based = json::truth(field("based"));
    std::string grammar;
    if (must || !based) {
      const std::string root =
          must ? enforcement.calls(calls, several_) : enforcement.text_or_calls(calls, several_);
      grammar = rules.grammar(root);
    } else if (!calls.empty() || enforcement.has_frame()) {
      grammar = rules.grammar(enforcement.base_or_calls(kBase, calls, several_));
    }
    Values parts;
    for (const LarkPart& part : parts_.all()) {
      parts.push_back(json::make_list({part.kind, part.text}));
    }
    return json::to_compact_json(json::make_dict({{"text", grammar},
                                                  {"parts", json::make_list(std::move(parts))},
                                                  {"used", list_of(parts_.used_in(grammar))},
                                                  {"tools", json::make_list(std::move(tools_))}}));
  }

 private:
  const Value& field(const char* name) const { return *chat_.dict().find(name); }

  bool is_open(size_t tool) const {
    const Values& open = field("open").items();
    return std::any_of(open.begin(), open.end(), [&](const Value& index) {
      return index.integer() == static_cast<int64_t>(tool);
    });
  }

  CallRules call_rules() {
    CallRules calls;
    const Values& tools = field("tools").items();
    for (size_t i = 0; i < tools.size(); ++i) {
      const json::Dict& tool = tools[i].dict();
      CallRule rule;
      rule.name = tool.find("name")->text();
      rule.schema = arguments_schema(*tool.find("parameters"));
      rule.open = is_open(i);
      if (!rule.open) audit(rule, i, !tool.find("input")->is_none());
      if (rule.open) {
        rule.schema = json::make_dict({{"type", "object"}});
        rule.input = rule.input_in_json = "";
        rule.arguments = LarkRules(special_, parts_).json(rule.schema, rule.schema);
      }
      calls.push_back(std::move(rule));
    }
    return calls;
  }

  // Sets the grammar of a tool's arguments and notes what the host has to check; `open` becomes
  // true for a schema that the format cannot enforce.
  void audit(CallRule& rule, size_t index, bool has_input) {
    LarkRules trial(special_, parts_);
    Texts problems = family_->format->unenforced(rule.schema);
    std::set<size_t> used;
    Value schema;
    try {
      rule.arguments = trial.json(rule.schema, rule.schema);
      used = parts_.used_in(rule.arguments);
      schema = Value::size(*used.begin());
      if (has_input) set_input(rule, std::to_string(index), trial);
      if (problems.empty()) {
        used.merge(parts_.used_in(trial.grammar(family_->format->forced(trial, {rule}, false))));
      }
    } catch (Unenforced& unenforced) {
      problems = std::move(unenforced.lines);
    }
    rule.open = !problems.empty();
    tools_.push_back(
        json::make_dict({{"tool", Value::size(index)},
                         {"schema", schema},
                         {"parts", list_of(used)},
                         {"problems", json::make_list(Values(problems.begin(), problems.end()))}}));
  }

  // Sets the grammar of a custom tool, whose input has one of its own. tool: its index.
  void set_input(CallRule& rule, const std::string& tool, const Rules& rules) {
    rule.input = parts_.rule("input", tool);
    rule.input_in_json = R"("\"" )" + parts_.rule("input_in_json", tool) + R"( "\"")";
    const std::string gap = " " + rules.characters("[ \\n]{0,4}") + " ";
    rule.arguments = "\"{\"" + gap + quoted("\"" + std::string(kInputArgument) + "\":") + gap +
                     rule.input_in_json + gap + "\"}\"";
  }

  const Value& chat_;
  const bool several_;
  const Family* family_ = nullptr;
  std::optional<Thoughts> thoughts_;
  std::vector<std::pair<std::string, int32_t>> special_;
  LarkParts parts_;
  Values tools_;  // what the host has to check of the tools that are not open
};

}  // namespace

std::string calls_grammar(const Value& chat) { return Chat(chat).written(); }

}  // namespace wherry::app
