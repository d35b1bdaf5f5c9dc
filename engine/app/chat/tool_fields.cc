#include "app/chat/tool_fields.h"

#include "app/template/code_points.h"

namespace wherry::app {

namespace {

constexpr size_t kTools = 512, kCalls = 512, kLongName = 256, kLongId = 1024;

// A field of an object; null where it is missing or null.
const Value* field(const Value& object, const char* name) {
  const Value* found = object.dict().find(name);
  return found == nullptr || found->is_none() ? nullptr : found;
}

bool required(Checker& check, const std::string& where, const Value& object, const char* name) {
  if (object.dict().find(name) != nullptr) return true;
  check.add(where + "." + name, "Field required");
  return false;
}

// A field that has to be one of two texts, or of one; `otherwise`: whether it may be missing.
void word(Checker& check, const std::string& where, const Value& object, const char* name,
          const char* problem, std::initializer_list<const char*> words, bool otherwise = false) {
  const Value* found = object.dict().find(name);
  if (found == nullptr && otherwise) return;
  if (!required(check, where, object, name)) return;
  for (const char* known : words) {
    if (found->is_string() && found->text() == known) return;
  }
  check.add(where + "." + name, problem);
}

void is_function(Checker& check, const std::string& where, const Value& object,
                 bool otherwise = false) {
  word(check, where, object, "type", "Input should be 'function'", {"function"}, otherwise);
}

void name_of(Checker& check, const std::string& where, const Value& object) {
  if (!required(check, where, object, "name")) return;
  const Value& name = *object.dict().find("name");
  if (!check.text(where + ".name", name, kLongName, 1)) return;
  const std::string& text = name.text();
  bool fits = text.find_first_of("\"'<>{}[]()|") == text.npos;
  for (size_t at = 0; at < text.size();) {
    const bool space = jinja::is_space(jinja::next_code_point(text, at));
    fits = fits && !space;
  }
  if (!fits) {
    check.add(where + ".name", "String should match pattern '^[^\\s\\\"'<>{}\\[\\]()|]+$'");
  }
}

void function(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value, "Function")) return;
  name_of(check, where, value);
  if (const Value* words = field(value, "description")) check.text(where + ".description", *words);
  if (const Value* schema = field(value, "parameters"))
    check.object(where + ".parameters", *schema);
  if (const Value* strict = field(value, "strict")) check.boolean(where + ".strict", *strict);
}

bool tool(Checker& check, const std::string& where, const Value& value) {
  const size_t before = check.problems();
  if (check.object(where, value, "Tool")) {
    is_function(check, where, value);
    if (required(check, where, value, "function")) {
      function(check, where + ".function", *value.dict().find("function"));
    }
  }
  return check.problems() == before;
}

void named_tool(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value, "NamedTool")) return;
  is_function(check, where, value);
  if (!required(check, where, value, "function")) return;
  const Value& function = *value.dict().find("function");
  if (check.object(where + ".function", function, "FunctionName")) {
    name_of(check, where + ".function", function);
  }
}

void allowed(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value, "Allowed")) return;
  word(check, where, value, "mode", "Input should be 'auto' or 'required'", {"auto", "required"});
  if (!required(check, where, value, "tools")) return;
  const Value& tools = *value.dict().find("tools");
  const std::string at = where + ".tools";
  if (!check.few(at, tools, kTools, "tools") || !check.list(at, tools)) return;
  if (tools.items().empty()) {
    check.add(at, "List should have at least 1 item after validation, not 0");
  }
  for (size_t i = 0; i < tools.items().size(); ++i) {
    named_tool(check, at + "[" + std::to_string(i) + "]", tools.items()[i]);
  }
}

void allowed_tools(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value, "AllowedTools")) return;
  word(check, where, value, "type", "Input should be 'allowed_tools'", {"allowed_tools"});
  if (required(check, where, value, "allowed_tools")) {
    allowed(check, where + ".allowed_tools", *value.dict().find("allowed_tools"));
  }
}

bool call(Checker& check, const std::string& where, const Value& value) {
  const size_t before = check.problems();
  if (!check.object(where, value, "MessageCall")) return false;
  if (const Value* id = field(value, "id")) check.text(where + ".id", *id, kLongId);
  is_function(check, where, value, true);
  if (!required(check, where, value, "function")) return false;
  const Value& called = *value.dict().find("function");
  const std::string at = where + ".function";
  if (!check.object(at, called, "CalledFunction")) return false;
  if (required(check, at, called, "name")) {
    check.text(at + ".name", *called.dict().find("name"), kLongName);
  }
  const Value* arguments = called.dict().find("arguments");
  if (arguments != nullptr && !arguments->is_dict()) check.text(at + ".arguments", *arguments);
  return check.problems() == before;
}

// Up to the first that is wrong.
template <typename One>
void each(Checker& check, const std::string& where, const Value& list, One one) {
  for (size_t i = 0; i < list.items().size(); ++i) {
    if (!one(check, where + "[" + std::to_string(i) + "]", list.items()[i])) return;
  }
}

}  // namespace

void check_tools(Checker& check, const Value& tools) {
  if (check.few("tools", tools, kTools, "tools") && check.list("tools", tools)) {
    each(check, "tools", tools, tool);
  }
}

void check_tool_choice(Checker& check, const Value& choice) {
  Checker as_named, as_allowed;  // what it is not
  named_tool(as_named, "tool_choice.NamedTool", choice);
  allowed_tools(as_allowed, "tool_choice.AllowedTools", choice);
  const bool fits = as_named.problems() == 0 || as_allowed.problems() == 0;
  for (const char* known : {"none", "auto", "required", "any"}) {
    if (fits || (choice.is_string() && choice.text() == known)) return;
  }
  check.add("tool_choice", "Input should be 'none', 'auto', 'required' or 'any'");
  check.add_all(as_named);
  check.add_all(as_allowed);
}

void check_calls(Checker& check, const std::string& where, const Value& calls) {
  if (check.few(where, calls, kCalls, "calls") && check.list(where, calls)) {
    each(check, where, calls, call);
  }
}

}  // namespace wherry::app
