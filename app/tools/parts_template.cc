#include "app/tools/parts_template.h"

#include <string>
#include <utility>

namespace wherry::app {

namespace {

using json::Value;
using json::Values;

constexpr const char* kProbe = "needle8";

Value one_part(const Value& text) {
  return json::make_list({json::make_dict({{"type", "text"}, {"text", text}})});
}

class PartsTemplate : public jinja::ChatTemplate {
 public:
  explicit PartsTemplate(std::unique_ptr<const jinja::ChatTemplate> chat_template)
      : template_(std::move(chat_template)) {}

  std::string render(const Value& messages, bool add_generation_prompt, const Value& variables,
                     const std::function<bool()>& gone) const override {
    Values values;
    for (const Value& message : messages.items()) {
      const Value* content = message.dict().find("content");
      if (content == nullptr || !content->is_string()) {
        values.push_back(message);
        continue;
      }
      auto fields = message.dict().items;
      fields.emplace_back("content", one_part(*content));  // replaces the text
      values.push_back(json::make_dict(std::move(fields)));
    }
    return template_->render(json::make_list(std::move(values)), add_generation_prompt, variables,
                             gone);
  }
  const std::string& source() const override { return template_->source(); }
  const std::set<std::string>& variables() const override { return template_->variables(); }

 private:
  const std::unique_ptr<const jinja::ChatTemplate> template_;
};

// Whether the template prints a user's content.
bool prints(const jinja::ChatTemplate& chat_template, const Value& content) {
  const Value message = json::make_dict({{"role", "user"}, {"content", content}});
  try {
    return chat_template.render(json::make_list({message}), true, json::make_dict({}))
               .find(kProbe) != std::string::npos;
  } catch (const jinja::Refused&) {
    return false;
  }
}

}  // namespace

std::unique_ptr<const jinja::ChatTemplate> taking_texts(
    std::unique_ptr<const jinja::ChatTemplate> chat_template) {
  if (prints(*chat_template, kProbe) || !prints(*chat_template, one_part(kProbe))) {
    return chat_template;
  }
  return std::make_unique<PartsTemplate>(std::move(chat_template));
}

}  // namespace wherry::app
