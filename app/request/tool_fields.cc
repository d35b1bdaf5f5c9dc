#include "app/request/tool_fields.h"

#include "app/request/request_error.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

constexpr size_t kTools = 512, kCalls = 512, kLongName = 256, kLongId = 1024;

// Returns an object's field; null if the field is missing or null.
const Value* field(const Value& object, const char* name) {
  const Value* match = object.dict().find(name);
  return match == nullptr || match->is_none() ? nullptr : match;
}

bool required(Checker& check, const std::string& where, const Value& object, const char* name) {
  if (object.dict().find(name) != nullptr) return true;
  check.missing(where + "." + name);
  return false;
}

// Checks that a field is one of the given words; otherwise: whether it may be missing.
void word(Checker& check, const std::string& where, const Value& object, const char* name,
          std::initializer_list<const char*> words, bool otherwise = false) {
  const Value* match = object.dict().find(name);
  if (match == nullptr && otherwise) return;
  if (!required(check, where, object, name)) return;
  std::string names;
  for (const char* known : words) {
    if (match->is_string() && match->text() == known) return;
    names += (names.empty() ? "" : " or ") + std::string(known);
  }
  check.add(where + "." + name, "takes " + names);
}

void is_function(Checker& check, const std::string& where, const Value& object,
                 bool otherwise = false) {
  word(check, where, object, "type", {"function"}, otherwise);
}

void name_of(Checker& check, const std::string& where, const Value& object) {
  if (!required(check, where, object, "name")) return;
  const Value& name = *object.dict().find("name");
  if (!check.text(where + ".name", name, kLongName, 1)) return;
  const std::string& text = name.text();
  bool fits = text.find_first_of("\"'<>{}[]()|") == text.npos;
  for (size_t at = 0; at < text.size();) {
    const bool space = unicode::is_space(unicode::next_code_point(text, at));
    fits = fits && !space;
  }
  if (!fits) {
    check.add(where + ".name", "takes no white space, quotes or brackets");
  }
}

void function(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  name_of(check, where, value);
  if (const Value* words = field(value, "description")) check.text(where + ".description", *words);
  if (const Value* schema = field(value, "parameters"))
    check.object(where + ".parameters", *schema);
  if (const Value* strict = field(value, "strict")) check.boolean(where + ".strict", *strict);
}

bool is_of(const Value& value, const char* kind) {
  const Value* match = value.is_dict() ? field(value, "type") : nullptr;
  return match != nullptr && match->is_string() && match->text() == kind;
}

// Whether a tool is of a kind that no client runs.
bool is_other(const Value& tool) {
  const Value* kind = tool.is_dict() ? field(tool, "type") : nullptr;
  return kind != nullptr && kind->is_string() && !is_of(tool, "function") && !is_of(tool, "custom");
}

// Checks the format of a custom tool's input. The fields of its grammar may also stand next to the
// type, as the Responses API has them.
void input_format(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  word(check, where, value, "type", {"text", "grammar"});
  const Value* grammar = field(value, "grammar");
  const bool flat = grammar == nullptr && field(value, "definition") != nullptr;
  if (grammar == nullptr && !flat) return;
  const std::string at = where + ".grammar";
  if (flat) grammar = &value;
  if (!check.object(at, *grammar)) return;
  word(check, at, *grammar, "syntax", {"lark", "regex"});
  if (required(check, at, *grammar, "definition")) {
    check.text(at + ".definition", *grammar->dict().find("definition"));
  }
}

void custom(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  name_of(check, where, value);
  if (const Value* words = field(value, "description")) check.text(where + ".description", *words);
  if (const Value* format = field(value, "format")) input_format(check, where + ".format", *format);
}

bool tool(Checker& check, const std::string& where, const Value& value) {
  const size_t before = check.problems();
  if (is_other(value)) return true;  // refuse_tools reports it
  if (is_of(value, "custom")) {
    if (required(check, where, value, "custom")) {
      custom(check, where + ".custom", *value.dict().find("custom"));
    }
    return check.problems() == before;
  }
  if (check.object(where, value)) {
    is_function(check, where, value);
    if (required(check, where, value, "function")) {
      function(check, where + ".function", *value.dict().find("function"));
    }
  }
  return check.problems() == before;
}

void named_tool(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  is_function(check, where, value);
  if (!required(check, where, value, "function")) return;
  const Value& function = *value.dict().find("function");
  if (check.object(where + ".function", function)) {
    name_of(check, where + ".function", function);
  }
}

void allowed(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  word(check, where, value, "mode", {"auto", "required"});
  if (!required(check, where, value, "tools")) return;
  const Value& tools = *value.dict().find("tools");
  const std::string at = where + ".tools";
  if (!check.few(at, tools, kTools) || !check.list(at, tools)) return;
  if (tools.items().empty()) {
    check.add(at, "takes at least 1 tool");
  }
  for (size_t i = 0; i < tools.items().size(); ++i) {
    named_tool(check, item(at, i), tools.items()[i]);
  }
}

void allowed_tools(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  word(check, where, value, "type", {"allowed_tools"});
  if (required(check, where, value, "allowed_tools")) {
    allowed(check, where + ".allowed_tools", *value.dict().find("allowed_tools"));
  }
}

bool call(Checker& check, const std::string& where, const Value& value) {
  const size_t before = check.problems();
  if (!check.object(where, value)) return false;
  if (const Value* id = field(value, "id")) check.text(where + ".id", *id, kLongId);
  if (is_of(value, "custom")) {
    if (!required(check, where, value, "custom")) return false;
    const Value& called = *value.dict().find("custom");
    const std::string at = where + ".custom";
    if (!check.object(at, called)) return false;
    for (const char* name : {"name", "input"}) {
      if (!required(check, at, called, name)) continue;
      check.text(at + "." + name, *called.dict().find(std::string_view(name)),
                 std::string_view(name) == "name" ? kLongName : 0);
    }
    return check.problems() == before;
  }
  is_function(check, where, value, true);
  if (!required(check, where, value, "function")) return false;
  const Value& called = *value.dict().find("function");
  const std::string at = where + ".function";
  if (!check.object(at, called)) return false;
  if (required(check, at, called, "name")) {
    check.text(at + ".name", *called.dict().find("name"), kLongName);
  }
  const Value* arguments = called.dict().find("arguments");
  if (arguments != nullptr && !arguments->is_dict()) check.text(at + ".arguments", *arguments);
  return check.problems() == before;
}

// Checks the items of a list up to the first invalid one.
template <typename One>
void each(Checker& check, const std::string& where, const Value& list, One one) {
  for (size_t i = 0; i < list.items().size(); ++i) {
    if (!one(check, item(where, i), list.items()[i])) return;
  }
}

}  // namespace

Value with_functions(const Value& choice) {
  using Items = std::vector<std::pair<Value, Value>>;
  if (!choice.is_dict()) return choice;
  Items items = choice.dict().items;
  if (const Value* own = is_of(choice, "custom") ? field(choice, "custom") : nullptr) {
    items.emplace_back("type", "function");
    items.emplace_back("function", *own);
    return json::make_dict(std::move(items));
  }
  const Value* allowed = field(choice, "allowed_tools");
  const Value* tools = allowed && allowed->is_dict() ? field(*allowed, "tools") : nullptr;
  if (tools == nullptr || !tools->is(json::Kind::kList)) return choice;
  Values values;
  for (const Value& tool : tools->items()) values.push_back(with_functions(tool));
  Items inner = allowed->dict().items;
  inner.emplace_back("tools", json::make_list(std::move(values)));
  items.emplace_back("allowed_tools", json::make_dict(std::move(inner)));
  return json::make_dict(std::move(items));
}

void check_tools(Checker& check, const Value& tools) {
  if (check.few("tools", tools, kTools) && check.list("tools", tools)) {
    each(check, "tools", tools, tool);
  }
}

void refuse_tools(const Value& tools) {
  for (size_t i = 0; i < tools.items().size(); ++i) {
    if (!is_other(tools.items()[i])) continue;
    const std::string where = item("tools", i);
    throw RequestError(where + " is of type '" + field(tools.items()[i], "type")->text() +
                           "'; accepted are 'function' and 'custom', which the client runs",
                       where + ".type", "unsupported_tool");
  }
}

void check_tool_choice(Checker& check, const Value& choice) {
  Checker as_named, as_allowed;  // problems of the two possible shapes
  named_tool(as_named, "tool_choice.NamedTool", choice);
  allowed_tools(as_allowed, "tool_choice.AllowedTools", choice);
  const bool fits = as_named.problems() == 0 || as_allowed.problems() == 0;
  for (const char* known : {"none", "auto", "required", "any"}) {
    if (fits || (choice.is_string() && choice.text() == known)) return;
  }
  check.add("tool_choice", "takes none, auto, required, any, a function or allowed_tools");
  check.add_all(as_named);
  check.add_all(as_allowed);
}

void check_calls(Checker& check, const std::string& where, const Value& calls) {
  if (check.few(where, calls, kCalls) && check.list(where, calls)) {
    each(check, where, calls, call);
  }
}

}  // namespace wherry::app
