#include "app/chat/chat_tools.h"

#include <algorithm>

#include "app/chat/call_rules.h"
#include "app/chat/conversation.h"
#include "app/chat/enforcement.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

const ChatFormat& existing(const ChatFormat* chat_format) {
  if (chat_format != nullptr) return *chat_format;
  throw RequestError(
      "This model has no chat template. Use completions: POST /v1/completions, or "
      "engine.completions.create(prompt=...).",
      "messages", "no_chat_template");
}

void mark_last(Values& messages, const Fields& fields, const std::string& mark) {
  const Fields last(fields.find("messages")->items().back());
  const Value* calls = last.find("tool_calls");
  if (last.text("role") != "assistant" || (calls != nullptr && json::truth(*calls)) ||
      fields.truth("add_generation_prompt")) {
    throw RequestError(
        "continue_final_message needs a last message of the assistant without tool_calls, and no "
        "add_generation_prompt",
        "continue_final_message");
  }
  Items end = messages.back().dict().items;
  end.emplace_back("content", messages.back().dict().find("content")->text() + mark);
  messages.back() = json::make_dict(std::move(end));
}

// Returns the reasoning effort as Harmony's templates name it.
std::string channel_effort(const std::string& effort) {
  if (effort == "none" || effort == "minimal") return "low";
  return effort == "xhigh" || effort == "max" ? "high" : effort;
}

// Returns what DeepSeek's field `thinking` says.
bool is_enabled(const Value& thinking) {
  const Value* given = thinking.dict().find("type");
  const std::string kind = given != nullptr && given->is_string() ? given->text() : "";
  if (kind == "enabled" || kind == "disabled") return kind == "enabled";
  throw RequestError("thinking.type is " + json::repr(given == nullptr ? Value() : *given) +
                         "; it takes 'enabled' or 'disabled'",
                     "thinking.type");
}

// Sets the variable with the documents of the request.
void add_documents(Items& result, const Fields& fields, const ChatFormat& chat_format) {
  const Value* documents = fields.find("documents");
  if (documents == nullptr || documents->items().empty()) return;
  if (!chat_format.knows("documents")) {
    throw RequestError(
        "This model's chat template does not read documents; put them into a message", "documents",
        "unsupported_parameter");
  }
  result.emplace_back("documents", *documents);
}

// Sets the variables for reasoning_effort and enable_thinking that the template reads.
void add_effort(Items& result, const Fields& fields, const ChatFormat& chat_format) {
  const std::string effort = fields.text("reasoning_effort");
  std::optional<bool> thinks;
  if (fields.has("enable_thinking")) {
    thinks = fields.truth("enable_thinking");
  } else if (const Value* thinking = fields.find("thinking")) {
    thinks = is_enabled(*thinking);
  } else if (!effort.empty()) {
    thinks = effort != "none" && effort != "minimal";
  }
  if (!effort.empty() && chat_format.knows("reasoning_effort")) {
    result.emplace_back("reasoning_effort",
                        chat_format.family().channels ? channel_effort(effort) : effort);
  }
  for (const char* name : {"enable_thinking", "thinking"}) {
    if (thinks && chat_format.knows(name)) result.emplace_back(name, *thinks);
  }
}

}  // namespace

ChatTools::ChatTools(const Fields& fields, const ChatFormat* chat_format, const Vision* vision)
    : fields_(fields),
      requested_(requested_tools(fields)),
      chat_format_(existing(chat_format).suited(!requested_.tools.empty())),
      images_(vision),
      messages_(conversation(*fields.find("messages"), requested_.tools, chat_format_, images_)) {}

Value ChatTools::variables() const {
  Items result = chat_format_.tool_variables().of(requested_.tools);
  add_effort(result, fields_, chat_format_);
  add_documents(result, fields_, chat_format_);
  if (const Value* more = fields_.find("chat_template_kwargs")) {
    result.insert(result.end(), more->dict().items.begin(), more->dict().items.end());
  }
  return json::make_dict(std::move(result));
}

// Renders messages, adapted to the template.
std::string ChatTools::adapted_text(Values messages, bool opens, const std::function<bool()>& gone,
                                    Texts* changes) const {
  const History* history = chat_format_.history();
  Adapted adapted{std::move(messages), {}};
  if (history != nullptr) adapted = history->adapted(std::move(adapted.messages));
  const Value all = images_.marked(variables());
  const auto text = [&] {
    std::string result = chat_format_.chat_template().render(
        images_.for_template(json::make_list(adapted.messages)), opens, all, gone);
    if (changes != nullptr) *changes = std::move(adapted.changes);
    return result;
  };
  try {
    return text();
  } catch (const jinja::Refused& error) {
    if (history != nullptr) {
      adapted = history->retried(std::move(adapted), opens, all, gone);
    } else {
      adapted.messages.clear();
    }
    if (adapted.messages.empty()) throw RequestError(error.what(), "messages", "chat_template");
    return text();
  }
}

std::string ChatTools::rendered(const std::function<bool()>& gone, Texts* changes) const {
  Values messages = messages_;
  const std::string mark = fields_.truth("continue_final_message") ? new_mark() : "";
  if (!mark.empty()) mark_last(messages, fields_, mark);
  const bool opens =
      !fields_.has("add_generation_prompt") || fields_.truth("add_generation_prompt");
  std::string text = adapted_text(messages, mark.empty() && opens, gone, changes);
  if (!images_.fit(text) && chat_format_.history() != nullptr) {
    Values moved = images_.after_results(messages);
    if (!moved.empty()) {
      text = adapted_text(std::move(moved), mark.empty() && opens, gone, changes);
      if (changes != nullptr) changes->emplace_back("images-after-results");
    }
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

// Whether the response returns reasoning separately from the text.
bool ChatTools::separate() const {
  return fields_.text("reasoning_format") != "none" &&
         (!fields_.has("separate_reasoning") || fields_.truth("separate_reasoning"));
}

// Whether the parser reads the output in the family's format.
bool ChatTools::in_format() const {
  return !requested_.tools.empty() || (chat_format_.family().channels && separate());
}

// Whether the message that the output continues ends inside reasoning.
bool ChatTools::goes_on_thinking(const Thoughts& thoughts) const {
  if (!fields_.truth("continue_final_message")) return false;
  const std::string said = Fields(messages_.back()).text("content");
  const size_t begin = said.rfind(thoughts.begin), end = said.rfind(thoughts.end);
  return begin != said.npos && (end == said.npos || begin > end);
}

// Whether the output continues a text, so that no reasoning can precede it.
bool ChatTools::goes_on_in_words(const Thoughts& thoughts) const {
  if (!fields_.truth("continue_final_message") || goes_on_thinking(thoughts)) return false;
  const std::string said = Fields(messages_.back()).text("content");
  return unicode::skip_left(said) < said.size() && !thoughts.opened(said);
}

ChatTools::Beginning ChatTools::beginning(const std::string& prompt) const {
  Beginning result{chat_format_.thoughts(), false, nullptr};
  if (result.thoughts && (result.thoughts->closed(prompt) || goes_on_in_words(*result.thoughts))) {
    result.thoughts.reset();
  }
  result.opened =
      result.thoughts && (result.thoughts->opened(prompt) || goes_on_thinking(*result.thoughts));
  const Family& family = chat_format_.family();
  if (in_format() || family.channels) result.family = &family;
  return result;
}

// Whether neither tools nor the request's other fields (`constrained`) constrain the output.
bool ChatTools::is_free(bool constrained) const {
  const auto& strict = requested_.strict;
  return !constrained && !requested_.must &&
         std::find(strict.begin(), strict.end(), true) == strict.end();
}

std::optional<Constraint> ChatTools::constraint(const std::string& prompt,
                                                const std::optional<Constraint>& base,
                                                const Tokenizer& tokenizer) const {
  if (is_free(base.has_value())) return std::nullopt;
  const Beginning begins = beginning(prompt);
  EbnfRules rules(tokenizer, special_names(begins.family, begins.thoughts));
  const Enforcement enforcement(begins.family, begins.thoughts, begins.opened, rules);
  if (base && requested_.tools.empty() && !enforcement.has_frame()) return base;
  const bool several = !requested_.one;
  const std::string own = base && !requested_.must ? rules.included(*base) : "";
  CallRules calls;
  if (!requested_.tools.empty()) calls = call_rules(requested_, *begins.family->format, rules);
  const std::string root = requested_.must ? enforcement.calls(calls, several)
                           : base          ? enforcement.base_or_calls(own, calls, several)
                                           : enforcement.text_or_calls(calls, several);
  return std::move(rules).constraint(root, own.empty() ? "tools" : base->param);
}

std::optional<Value> ChatTools::requirements(const std::string& prompt, bool constrained,
                                             const Tokenizer& tokenizer) const {
  if (is_free(constrained)) return std::nullopt;
  const Beginning begins = beginning(prompt);
  Values tools;
  for (size_t i = 0; i < requested_.tools.size(); ++i) {
    const Value& function = *requested_.tools[i].dict().find("function");
    Value input;
    if (const auto& grammar = requested_.inputs[i]) {
      input = json::make_list({grammar->syntax, grammar->definition});
    }
    tools.push_back(json::make_dict({{"name", *function.dict().find("name")},
                                     {"parameters", *function.dict().find("parameters")},
                                     {"strict", static_cast<bool>(requested_.strict[i])},
                                     {"input", input}}));
  }
  Items special;
  for (const std::string& name : special_names(begins.family, begins.thoughts)) {
    if (const auto id = tokenizer.special_id(name)) special.emplace_back(name, *id);
  }
  const Value thoughts =
      begins.thoughts ? json::make_list({begins.thoughts->begin, begins.thoughts->end}) : Value();
  return json::make_dict({{"family", begins.family ? Value(begins.family->name) : Value()},
                          {"thoughts", thoughts},
                          {"opened", begins.opened},
                          {"must", requested_.must},
                          {"several", !requested_.one},
                          {"special", json::make_dict(std::move(special))},
                          {"tools", json::make_list(std::move(tools))}});
}

Reading ChatTools::reading(const std::string& prompt) const {
  Reading result;
  if (in_format()) result.family = &chat_format_.family();
  result.tools = requested_.schemas();
  if (separate()) result.thoughts = chat_format_.thoughts();
  result.opened =
      result.thoughts && (result.thoughts->opened(prompt) || goes_on_thinking(*result.thoughts));
  if (requested_.one) result.most = 1;
  return result;
}

std::vector<int32_t> ChatTools::visible(const Tokenizer& tokenizer) const {
  Texts names;
  if (in_format() || chat_format_.family().channels)
    names = chat_format_.family().format->markers();
  // The names are also needed where the response leaves reasoning in the text.
  if (chat_format_.thoughts()) {
    names.insert(names.end(), {chat_format_.thoughts()->begin, chat_format_.thoughts()->end});
  }
  std::vector<int32_t> result;
  for (const std::string& name : names) {
    if (const auto id = tokenizer.special_id(name)) result.push_back(*id);
  }
  return result;
}

Texts ChatTools::unused() const {
  Texts texts;
  const bool knows_thinking =
      chat_format_.knows("enable_thinking") || chat_format_.knows("thinking");
  if (!fields_.text("reasoning_effort").empty() && !chat_format_.knows("reasoning_effort") &&
      !knows_thinking) {
    texts.emplace_back("reasoning_effort");
  }
  for (const char* name : {"enable_thinking", "thinking"}) {
    if (fields_.has(name) && !knows_thinking) texts.emplace_back(name);
  }
  return texts;
}

std::vector<int32_t> ChatTools::stop_ids(const Tokenizer& tokenizer,
                                         std::vector<int32_t> known) const {
  if (!in_format()) return known;
  for (const std::string& name : chat_format_.family().stops) {
    const auto id = tokenizer.special_id(name);
    if (id && std::find(known.begin(), known.end(), *id) == known.end()) known.push_back(*id);
  }
  return known;
}

}  // namespace wherry::app
