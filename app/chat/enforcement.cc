#include "app/chat/enforcement.h"

namespace wherry::app {

Texts special_names(const Family* family, const std::optional<Thoughts>& thoughts) {
  Texts names;
  if (family != nullptr) {
    names = family->format->markers();
    names.insert(names.end(), family->stops.begin(), family->stops.end());
  }
  if (thoughts) names.insert(names.end(), {thoughts->begin, thoughts->end});
  return names;
}

bool Enforcement::has_frame() const {
  return thoughts_.has_value() || (family_ != nullptr && family_->channels);
}

std::string Enforcement::calls(const CallRules& tools, bool several) const {
  return after_reasoning(family_->format->forced(rules_, tools, several));
}

std::string Enforcement::text_or_calls(const CallRules& tools, bool several) const {
  return after_reasoning(family_->format->free(rules_, tools, several));
}

std::string Enforcement::base_or_calls(const std::string& base, const CallRules& tools,
                                       bool several) const {
  std::string body = family_ == nullptr ? base : family_->format->answer(rules_, base);
  if (!tools.empty()) {
    body = rules_.either({body, family_->format->forced(rules_, tools, several)});
  }
  return after_reasoning(body);
}

std::string Enforcement::after_reasoning(const std::string& body) const {
  if (!thoughts_) return body;
  const std::string rest = rules_.up_to(thoughts_->end) + " " + rules_.characters("[ \\n]{0,4}");
  if (opened_) return rest + " " + body;
  return "(" + rules_.text(thoughts_->begin) + " " + rest + ")? " + body;
}

}  // namespace wherry::app
