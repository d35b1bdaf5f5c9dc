#include "app/lite/conversation.h"

#include <algorithm>
#include <stdexcept>

namespace wherry::lite {

namespace {

constexpr int64_t kShare = 4;  // a response gets 1 / kShare of the context

}  // namespace

Conversation::Conversation(const Model& model, std::string system, int64_t max_tokens)
    : model_(model), system_(std::move(system)), max_tokens_(max_tokens) {}

Value Conversation::messages() const {
  jinja::Values made;
  const auto add = [&](const char* role, const std::string& text) {
    made.push_back(jinja::make_dict({{"role", role}, {"content", text}}));
  };
  if (!system_.empty()) add("system", system_);
  for (size_t i = sent_from_; i < turns_.size(); ++i) add(turns_[i].role, turns_[i].text);
  return jinja::make_list(std::move(made));
}

size_t Conversation::ask(const std::string& text) {
  const size_t before = sent_from_;
  turns_.push_back({"user", text});
  try {
    while (!fits()) sent_from_ += turns_.size() - sent_from_ > 2 ? 2 : 1;
  } catch (...) {
    sent_from_ = before;
    turns_.pop_back();
    throw;
  }
  return sent_from_ - before;
}

// Whether the context has room for a response. Throws if the last message alone is too long.
bool Conversation::fits() const {
  const bool alone = turns_.size() - sent_from_ == 1;
  const int64_t usual = std::max<int64_t>(1, model_.context() / kShare);
  const int64_t room = alone ? 1 : max_tokens_ > 0 ? max_tokens_ : usual;
  const int64_t prompt = model_.prompt_tokens(jinja::make_dict({{"messages", messages()}}));
  if (prompt + room <= model_.context()) return true;
  if (!alone) return false;
  throw std::runtime_error("This model's context is " + std::to_string(model_.context()) +
                           " tokens; the message alone has " + std::to_string(prompt) +
                           ". Shorten it.");
}

void Conversation::answered(const std::string& text) { turns_.push_back({"assistant", text}); }

std::optional<std::string> Conversation::withdraw() {
  while (!turns_.empty()) {
    const Turn turn = std::move(turns_.back());
    turns_.pop_back();
    if (turn.role[0] != 'u') continue;
    sent_from_ = std::min(sent_from_, turns_.size());
    return turn.text;
  }
  return std::nullopt;
}

}  // namespace wherry::lite
