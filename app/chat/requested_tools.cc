#include "app/chat/requested_tools.h"

#include <algorithm>

#include "app/request/request_error.h"
#include "app/tools/custom_calls.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

Value no_parameters() {
  return json::make_dict({{"type", "object"}, {"properties", json::make_dict({})}});
}

const Value& function_of(const Value& tool) { return *tool.dict().find("function"); }

std::optional<InputGrammar> input_grammar(const Value& custom) {
  const Value* format = Fields(custom).find("format");
  if (format == nullptr || Fields(*format).text("type") != "grammar") return std::nullopt;
  const Value* nested = Fields(*format).find("grammar");
  const Fields grammar(nested != nullptr ? *nested : *format);
  if (!grammar.has("definition")) return std::nullopt;
  return InputGrammar{grammar.text("syntax"), grammar.text("definition")};
}

// Returns a custom tool as the function that the model sees, which takes one text.
Value as_function(const Value& tool) {
  const Fields custom(*tool.dict().find("custom"));
  Items text = {{"type", "string"}};
  if (const auto grammar = input_grammar(custom.object())) {
    text.emplace_back("description",
                      "It follows this " + grammar->syntax + " grammar:\n" + grammar->definition);
  }
  Items function = {{"name", *custom.find("name")}};
  if (const Value* words = custom.find("description")) {
    function.emplace_back("description", *words);
  }
  function.emplace_back(
      "parameters",
      json::make_dict(
          {{"type", "object"},
           {"properties", json::make_dict({{kInputArgument, json::make_dict(std::move(text))}})},
           {"required", json::make_list({kInputArgument})},
           {"additionalProperties", false}}));
  Items fields;
  for (const auto& [name, value] : tool.dict().items) {
    if (name.text() != "function") fields.emplace_back(name, value);
  }
  fields.emplace_back("function", json::make_dict(std::move(function)));
  return json::make_dict(std::move(fields));
}

bool is_custom(const Value& tool) { return Fields(tool).text("type") == "custom"; }

const std::string& name_of(const Value& tool) {
  return function_of(tool).dict().find("name")->text();
}

// Returns a tool as templates print it: known fields first, without null fields and `strict`.
Value described(const Value& tool) {
  const Fields given(function_of(tool));
  const Value* parameters = given.find("parameters");
  const bool has = parameters != nullptr && json::truth(*parameters);
  Items function = {{"name", *given.find("name")}};
  if (const Value* words = given.find("description")) function.emplace_back("description", *words);
  if (parameters != nullptr) function.emplace_back("parameters", *parameters);
  for (const auto& [name, value] : given.object().dict().items) {
    if (name.text() != "strict" && !value.is_none()) function.emplace_back(name, value);
  }
  if (!given.has("description")) function.emplace_back("description", "");
  function.emplace_back("parameters", has ? *parameters : no_parameters());
  Items fields = {{"type", "function"}, {"function", json::make_dict(std::move(function))}};
  for (const auto& [name, value] : tool.dict().items) {
    const bool own = name.text() == "custom" && is_custom(tool);
    if (name.text() != "type" && name.text() != "function" && !own && !value.is_none()) {
      fields.emplace_back(name, value);
    }
  }
  return json::make_dict(std::move(fields));
}

bool is_strict(const Value& function) {
  const Value* given = Fields(function).find("strict");
  return given != nullptr && Checker().boolean("", *given).value_or(Value(false)).integer() != 0;
}

class Choosing {
 public:
  explicit Choosing(const Fields& fields) {
    if (const Value* tools = fields.find("tools")) {
      for (const Value& tool : tools->items()) {
        tools_.push_back(is_custom(tool) ? as_function(tool) : tool);
      }
    }
    for (size_t i = 0; i < tools_.size(); ++i) {
      const bool twice =
          std::any_of(tools_.begin() + static_cast<std::ptrdiff_t>(i) + 1, tools_.end(),
                      [&](const Value& other) { return name_of(other) == name_of(tools_[i]); });
      if (twice) {
        throw RequestError("tools has " + json::repr_text(name_of(tools_[i])) + " twice", "tools");
      }
    }
  }

  // Returns the declared tool that the request names.
  Value known(const Value& given, const char* where) const {
    const std::string& name = name_of(given);
    std::string names;
    for (const Value& tool : tools_) {
      if (name_of(tool) == name) return tool;
      names += (names.empty() ? "" : ", ") + json::repr_text(name_of(tool));
    }
    throw RequestError(std::string(where) + " is " + json::repr_text(name) + "; tools has " +
                           (names.empty() ? "none" : names),
                       where);
  }

  // Returns the tools that the model may call; sets `must` if the model has to call one.
  Values chosen(const Value* choice, bool& must) const {
    if (choice == nullptr) return tools_;
    if (choice->is_string()) {
      must = choice->text() == "required" || choice->text() == "any";
      if (must && tools_.empty()) {
        throw RequestError(
            "tool_choice is " + json::repr_text(choice->text()) + "; there are no tools",
            "tool_choice");
      }
      return choice->text() == "none" ? Values() : tools_;
    }
    const Value* allowed = choice->dict().find("allowed_tools");
    if (choice->dict().find("type")->text() == "function") {
      must = true;
      return {known(*choice, "tool_choice.function.name")};
    }
    must = allowed->dict().find("mode")->text() == "required";
    Values values;
    for (const Value& tool : allowed->dict().find("tools")->items()) {
      values.push_back(known(tool, "tool_choice.allowed_tools.tools"));
    }
    return values;
  }

 private:
  Values tools_;
};

}  // namespace

Tools RequestedTools::schemas() const {
  Tools result;
  for (const Value& tool : tools) {
    result.add(name_of(tool), *function_of(tool).dict().find("parameters"));
  }
  return result;
}

RequestedTools requested_tools(const Fields& fields) {
  RequestedTools result;
  const Value* choice = fields.find("tool_choice");
  for (const Value& tool : Choosing(fields).chosen(choice, result.must)) {
    result.inputs.push_back(is_custom(tool) ? input_grammar(*tool.dict().find("custom"))
                                            : std::nullopt);
    result.strict.push_back(result.inputs.back() || is_strict(function_of(tool)));
    if (is_custom(tool)) result.custom.push_back(name_of(tool));
    result.tools.push_back(described(tool));
  }
  result.named = choice != nullptr && choice->is_dict() && result.must &&
                 choice->dict().find("type")->text() == "function";
  result.one =
      result.named || (fields.has("parallel_tool_calls") && !fields.truth("parallel_tool_calls"));
  return result;
}

}  // namespace wherry::app
