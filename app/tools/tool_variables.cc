#include "app/tools/tool_variables.h"

#include <string>

#include "app/value/json_text.h"

namespace wherry::app {

namespace {

constexpr const char* kFunctions = "functions";

bool takes(const jinja::ChatTemplate& chat_template, const Value& functions) {
  const Value user = json::make_dict({{"role", "user"}, {"content", "x"}});
  try {
    const Value variables = json::make_dict({{kFunctions, functions}});
    return !chat_template.render(json::make_list({user}), false, variables).empty();
  } catch (const jinja::Refused&) {
    return false;
  }
}

// Returns the functions as JSON, laid out as in the text that Firefunction was trained on.
std::string functions_text(const json::Values& tools) {
  json::Values functions;
  for (const Value& tool : tools) {
    const Value* function = tool.dict().find("function");
    functions.push_back(function != nullptr ? *function : tool);
  }
  json::JsonStyle style;
  style.indent = "    ";
  style.comma = ",";
  return json::to_json(json::make_list(std::move(functions)), style);
}

}  // namespace

ToolVariables::ToolVariables(const jinja::ChatTemplate& chat_template) {
  for (const char* name : {"tools", "xml_tools", kFunctions}) {
    if (chat_template.variables().count(name) > 0) names_.emplace_back(name);
  }
  as_text_ = chat_template.variables().count(kFunctions) > 0 &&
             !takes(chat_template, json::make_list({})) && takes(chat_template, "[]");
}

std::vector<std::pair<Value, Value>> ToolVariables::of(const json::Values& tools) const {
  std::vector<std::pair<Value, Value>> variables;
  for (const std::string& name : names_) {
    if (as_text_ && name == kFunctions) {
      variables.emplace_back(name, functions_text(tools));
    } else if (!tools.empty()) {
      variables.emplace_back(name, json::make_list(tools));
    }
  }
  return variables;
}

}  // namespace wherry::app
