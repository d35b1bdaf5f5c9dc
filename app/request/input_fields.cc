#include "app/request/input_fields.h"

#include <algorithm>
#include <iterator>

#include "app/request/tool_fields.h"

namespace wherry::app {

namespace {

constexpr double kTokenIds = 2147483648.0;  // 2^31, the end of the range of token ids
constexpr size_t kLongWord = 1024;
constexpr size_t kMessages = 4096, kParts = 4096;
constexpr char kContent[] = "takes a text or a list of parts";

void check_text(Checker& check, const std::string& where, const Value& object, const char* name,
                size_t longest) {
  const Value* value = object.dict().find(name);
  if (value && !value->is_none()) check.text(where + "." + name, *value, longest);
}

void check_role(Checker& check, const std::string& where, const Value* role) {
  static const char* const kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};
  if (role == nullptr) return check.missing(where);
  if (role->is_string() && std::any_of(std::begin(kRoles), std::end(kRoles),
                                       [&](const char* known) { return role->text() == known; })) {
    return;
  }
  check.add(where, "takes system, developer, user, assistant, tool or function");
}

void check_content(Checker& check, const std::string& where, const Value& value) {
  if (value.is_string() || !check.few(where, value, kParts)) return;
  if (!value.is(json::Kind::kList)) {
    return check.add(where, kContent);
  }
  for (size_t i = 0; i < value.items().size(); ++i) {
    const std::string at = item(where, i);
    const Value& part = value.items()[i];
    const Value* kind = part.is_dict() ? part.dict().find("type") : nullptr;
    if (kind == nullptr || !kind->is_string()) {
      check.add(where, kContent);
    }
    if (!check.object(at, part)) return;
    const Value* type = part.dict().find("type");
    if (type == nullptr) return check.missing(at + ".type");
    if (!check.text(at + ".type", *type)) return;
  }
}

void check_message(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value)) return;
  check_role(check, where + ".role", value.dict().find("role"));
  if (const Value* content = value.dict().find("content"); content && !content->is_none()) {
    check_content(check, where + ".content", *content);
  }
  check_text(check, where, value, "name", kLongWord);
  if (const Value* calls = value.dict().find("tool_calls"); calls && !calls->is_none()) {
    check_calls(check, where + ".tool_calls", *calls);
  }
  check_text(check, where, value, "tool_call_id", kLongWord);
  for (const char* name : {"reasoning_content", "reasoning"}) {
    check_text(check, where, value, name, 0);
  }
}

void not_a_prompt(Checker& check, const std::string& name) {
  check.add(name, "takes a text, a list of texts, or a list, or lists, of token ids");
}

void check_ids(Checker& check, const std::string& name, const Value& value) {
  const auto is_id = [](const Value& token) {
    return token.is(json::Kind::kInt) && token.integer() >= 0 && token.number() < kTokenIds;
  };
  const bool ids =
      value.is(json::Kind::kList) && std::all_of(value.items().begin(), value.items().end(), is_id);
  if (!ids) not_a_prompt(check, name);
}

}  // namespace

void check_messages(Checker& check, const Value& messages) {
  if (!check.few("messages", messages, kMessages) || !check.list("messages", messages)) return;
  if (messages.items().empty()) check.add("messages", "takes at least 1 message");
  for (size_t i = 0; i < messages.items().size(); ++i) {
    check_message(check, item("messages", i), messages.items()[i]);
  }
}

void check_prediction(Checker& check, const std::string& name, const Value& prediction) {
  if (!check.object(name, prediction)) return;
  const Value* kind = prediction.dict().find("type");
  if (kind != nullptr && !(kind->is_string() && kind->text() == "content")) {
    check.add(name + ".type", "takes content");
  }
  const Value* content = prediction.dict().find("content");
  if (content == nullptr) return check.missing(name + ".content");
  check_content(check, name + ".content", *content);
}

void check_prompt(Checker& check, const std::string& name, const Value& prompt) {
  if (prompt.is_string()) return;
  if (!prompt.is(json::Kind::kList)) return not_a_prompt(check, name);
  const Values& items = prompt.items();
  if (items.empty() || items[0].is(json::Kind::kInt)) return check_ids(check, name, prompt);
  for (const Value& one : items) {
    if (!items[0].is_string()) {
      check_ids(check, name, one);
    } else if (!one.is_string()) {
      return not_a_prompt(check, name);
    }
  }
}

}  // namespace wherry::app
