#include "app/chat/input_fields.h"

#include <algorithm>
#include <iterator>

#include "app/chat/tool_fields.h"

namespace wherry::app {

namespace {

constexpr double kTokenIds = 2147483648.0;  // 2^31
constexpr size_t kLongWord = 1024;
constexpr size_t kMessages = 4096, kParts = 4096;

std::string numbered(const std::string& where, size_t i) {
  return where + "[" + std::to_string(i) + "]";
}

void check_text(Checker& check, const std::string& where, const Value& object, const char* name,
                size_t longest) {
  const Value* value = object.dict().find(name);
  if (value && !value->is_none()) check.text(where + "." + name, *value, longest);
}

void check_role(Checker& check, const std::string& where, const Value* role) {
  static const char* const kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};
  if (role == nullptr) return check.add(where, "Field required");
  if (role->is_string() && std::any_of(std::begin(kRoles), std::end(kRoles),
                                       [&](const char* known) { return role->text() == known; })) {
    return;
  }
  check.add(where,
            "Input should be 'system', 'developer', 'user', 'assistant', 'tool' or 'function'");
}

void check_content(Checker& check, const std::string& where, const Value& value) {
  if (value.is_string() || !check.few(where, value, kParts, "parts")) return;
  if (!value.is(jinja::Kind::kList)) {
    return check.add(where, "Input should be a valid string");
  }
  for (size_t i = 0; i < value.items().size(); ++i) {
    const std::string at = numbered(where, i);
    const Value& part = value.items()[i];
    const Value* kind = part.is_dict() ? part.dict().find("type") : nullptr;
    if (kind == nullptr || !kind->is_string()) {
      check.add(where, "Input should be a valid string");  // it might be one text
    }
    if (!check.object(at, part, "ContentPart")) return;
    const Value* type = part.dict().find("type");
    if (type == nullptr) return check.add(at + ".type", "Field required");
    if (!check.text(at + ".type", *type)) return;
  }
}

void check_message(Checker& check, const std::string& where, const Value& value) {
  if (!check.object(where, value, "Message")) return;
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

void not_a_prompt(Checker& check, const std::string& where, const Value& value) {
  std::string found = std::string("of type ") + jinja::type_name(value);
  if (value.is_none()) found = "null";
  if (value.is_dict()) found = "an object";
  if (value.is_string()) found = "a text";
  if (value.is(jinja::Kind::kList)) found = "a list";
  if (value.is(jinja::Kind::kInt)) found = "a number";
  check.add("prompt", where + "is " + found +
                          "; a prompt is a text, a list of texts, a list of token ids, or a list "
                          "of lists of token ids");
}

void check_ids(Checker& check, const std::string& where, const Value& value) {
  if (!value.is(jinja::Kind::kList)) return not_a_prompt(check, where, value);
  for (size_t i = 0; i < value.items().size(); ++i) {
    const Value& token = value.items()[i];
    const std::string at = where + "item " + std::to_string(i) + " ";
    if (!token.is(jinja::Kind::kInt)) return not_a_prompt(check, at, token);
    if (token.integer() < 0 || token.number() >= kTokenIds) {
      return check.add("prompt",
                       at + "is " + std::to_string(token.integer()) + "; token ids are from 0");
    }
  }
}

}  // namespace

void check_messages(Checker& check, const Value* messages) {
  if (messages == nullptr) return check.add("messages", "Field required");
  if (!check.few("messages", *messages, kMessages, "messages") ||
      !check.list("messages", *messages)) {
    return;
  }
  if (messages->items().empty()) {
    check.add("messages", "List should have at least 1 item after validation, not 0");
  }
  for (size_t i = 0; i < messages->items().size(); ++i) {
    check_message(check, numbered("messages", i), messages->items()[i]);
  }
}

void check_prompt(Checker& check, const Value* prompt) {
  if (prompt == nullptr) return check.add("prompt", "Field required");
  if (prompt->is_string()) return;
  if (!prompt->is(jinja::Kind::kList)) return not_a_prompt(check, "", *prompt);
  const Values& items = prompt->items();
  if (items.empty() || items[0].is(jinja::Kind::kInt)) return check_ids(check, "", *prompt);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string where = "item " + std::to_string(i) + " ";
    if (!items[0].is_string()) {
      check_ids(check, where, items[i]);
    } else if (!items[i].is_string()) {
      return not_a_prompt(check, where, items[i]);
    }
  }
}

}  // namespace wherry::app
