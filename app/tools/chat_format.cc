#include "app/tools/chat_format.h"

#include "app/tools/parts_template.h"

namespace wherry::app {

namespace {

constexpr const char* kNeedle = "needle7";

Value message(const char* role, const char* content) {
  return json::make_dict({{"role", role}, {"content", content}});
}

// Returns example messages with one tool call and its result.
Value with_call(const Value& arguments) {
  const Value function = json::make_dict({{"name", "f"}, {"arguments", arguments}});
  const Value call =
      json::make_dict({{"id", "abcdefghi"}, {"type", "function"}, {"function", function}});
  return json::make_list(
      {message("user", "x"),
       json::make_dict(
           {{"role", "assistant"}, {"content", ""}, {"tool_calls", json::make_list({call})}}),
       json::make_dict(
           {{"role", "tool"}, {"content", "y"}, {"name", "f"}, {"tool_call_id", "abcdefghi"}})});
}

}  // namespace

ChatFormat::ChatFormat(std::unique_ptr<const jinja::ChatTemplate> chat_template,
                       const std::string& tool_format,
                       const std::function<bool(const std::string&)>& known)
    : template_(taking_texts(std::move(chat_template))),
      tool_variables_(*template_),
      thoughts_(thoughts_of(template_->source())) {
  family_ = tool_format.empty() ? &recognized(known) : &family_named(tool_format);
  ask();
  history_.emplace(*template_, *family_, tool_variables_, takes_text_);
}

bool ChatFormat::knows(const std::string& variable) const {
  return template_->variables().count(variable) > 0;
}

// Returns the family whose format the model was trained on; if the template does not describe
// tools, one whose format a system message can explain.
const Family& ChatFormat::recognized(const std::function<bool(const std::string&)>& known) const {
  const Family& shown = family_of(template_->source());
  const Family& generic = generic_family();
  if (native()) return &shown == &generic ? family_of_tokens(known) : shown;
  return shown.format->example().empty() ? generic : shown;
}

// Returns the messages rendered with the template; "" if it rejects them.
std::string ChatFormat::tried(const Value& messages) const {
  try {
    return template_->render(messages, false, json::make_dict(tool_variables_.of({})));
  } catch (const jinja::Refused&) {
    return "";
  }
}

// Detects what the template supports by rendering examples. A template that expects arguments as
// text either fails for an object, or prints the object in Python syntax, with single quotes.
void ChatFormat::ask() {
  const std::string needle = kNeedle;
  const auto shows = [&](const std::string& result) { return result.find(needle) != result.npos; };
  const std::string as_object = tried(with_call(json::make_dict({{needle, "x"}})));
  const bool as_text = shows(tried(with_call("{\"" + needle + "\": \"x\"}")));
  const bool printed = as_object.find("{'" + needle + "'") != as_object.npos;
  takes_text_ = as_text && (!shows(as_object) || printed);
  takes_calls_ = native() || shows(as_object) || takes_text_;
  takes_system_ = shows(tried(json::make_list({message("system", kNeedle), message("user", "x")})));
}

}  // namespace wherry::app
