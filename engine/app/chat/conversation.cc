#include "app/chat/conversation.h"

#include <algorithm>
#include <random>

#include "app/chat/request_error.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

std::string text_of(const Value* content, size_t index) {
  if (content == nullptr || content->is_none()) return "";
  if (content->is_string()) return content->text();
  std::string made;
  for (size_t i = 0; i < content->items().size(); ++i) {
    const Fields part(content->items()[i]);
    const std::string type = part.text("type");
    const bool text = type == "text" || type == "input_text" || type == "output_text";
    if (!text || !part.has("text")) {
      throw RequestError(
          "Content of type " + jinja::repr_text(type) + " is not supported; this model reads text",
          "messages[" + std::to_string(index) + "].content[" + std::to_string(i) + "].type",
          "unsupported_content");
    }
    made += part.text("text");
  }
  return made;
}

Value plain(const Value& message, size_t index) {
  const Fields fields(message);
  if (const Value* calls = fields.find("tool_calls"); calls && jinja::truth(*calls)) {
    throw RequestError("Calls of tools are not supported by this runtime",
                       "messages[" + std::to_string(index) + "].tool_calls",
                       "unsupported_parameter");
  }
  Items made;
  static const char* const kKnown[] = {"role", "content", "name", "tool_call_id",
                                       "reasoning_content"};
  for (const char* name : kKnown) {
    if (const Value* value = fields.find(name)) made.emplace_back(name, *value);
  }
  for (const auto& [name, value] : message.dict().items) {
    const bool known = std::any_of(std::begin(kKnown), std::end(kKnown),
                                   [&](const char* k) { return name.text() == k; });
    if (!known && name.text() != "tool_calls" && name.text() != "reasoning" && !value.is_none()) {
      made.emplace_back(name, value);
    }
  }
  made.emplace_back("content", text_of(fields.find("content"), index));
  const std::string role = fields.text("role");
  if (role == "developer") made.emplace_back("role", "system");
  if (role == "tool" || role == "function") {
    made.emplace_back("role", "tool");
    if (!fields.has("name")) made.emplace_back("name", "unknown");
  }
  std::string thoughts = fields.text("reasoning_content");
  if (thoughts.empty()) thoughts = fields.text("reasoning");
  if (!thoughts.empty()) made.emplace_back("reasoning_content", thoughts);
  return jinja::make_dict(std::move(made));
}

// Variables for reasoning_effort and enable_thinking, where the template knows them; then the
// request's own.
Value variables_of(const Fields& fields, const jinja::ChatTemplate& chat_template) {
  Items made;
  const auto knows = [&](const char* name) { return chat_template.variables().count(name) > 0; };
  const std::string effort = fields.text("reasoning_effort");
  std::optional<bool> thinks;
  if (fields.has("enable_thinking")) {
    thinks = fields.truth("enable_thinking");
  } else if (!effort.empty()) {
    thinks = effort != "none" && effort != "minimal";
  }
  if (!effort.empty() && knows("reasoning_effort")) made.emplace_back("reasoning_effort", effort);
  for (const char* name : {"enable_thinking", "thinking"}) {
    if (thinks && knows(name)) made.emplace_back(name, *thinks);
  }
  if (const Value* more = fields.find("chat_template_kwargs")) {
    made.insert(made.end(), more->dict().items.begin(), more->dict().items.end());
  }
  return jinja::make_dict(std::move(made));
}

// What stands at the end of the last message, so that it is found in the prompt.
std::string new_mark() {
  std::random_device device;
  std::string made;
  for (int i = 0; i < 32; ++i) made += "0123456789abcdef"[device() % 16];
  return made;
}

Value with_mark(const Fields& fields, const Value& messages, const std::string& mark) {
  const Fields last(fields.find("messages")->items().back());
  if (last.text("role") != "assistant" || fields.truth("add_generation_prompt")) {
    throw RequestError(
        "continue_final_message needs a last message of the assistant without tool_calls, and no "
        "add_generation_prompt",
        "continue_final_message");
  }
  Values made = messages.items();
  Items end = made.back().dict().items;
  end.emplace_back("content", made.back().dict().find("content")->text() + mark);
  made.back() = jinja::make_dict(std::move(end));
  return jinja::make_list(std::move(made));
}

}  // namespace

Value conversation(const Value& messages) {
  Values made;
  for (const Value& message : messages.items()) made.push_back(plain(message, made.size()));
  return jinja::make_list(std::move(made));
}

std::string rendered(const Fields& fields, const jinja::ChatTemplate* chat_template,
                     const std::function<bool()>& gone) {
  if (chat_template == nullptr) {
    throw RequestError(
        "This model has no chat template. Use completions: POST /v1/completions, or "
        "engine.completions.create(prompt=...).",
        "messages", "no_chat_template");
  }
  Value messages = conversation(*fields.find("messages"));
  std::string mark;
  if (fields.truth("continue_final_message")) {
    mark = new_mark();
    messages = with_mark(fields, messages, mark);
  }
  const bool opens = !fields.has("add_generation_prompt") || fields.truth("add_generation_prompt");
  std::string text;
  try {
    text = chat_template->render(messages, mark.empty() && opens,
                                 variables_of(fields, *chat_template), gone);
  } catch (const jinja::Refused& error) {
    throw RequestError(error.what(), "messages", "chat_template");
  }
  if (mark.empty()) return text;
  const size_t end = text.rfind(mark);
  if (end == text.npos) {
    throw RequestError(
        "The model's chat template leaves out the last message; it cannot be continued",
        "continue_final_message", "chat_template");
  }
  return text.substr(0, end);
}

}  // namespace wherry::app
