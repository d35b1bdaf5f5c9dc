#include "app/chat/plan.h"

#include <algorithm>
#include <random>
#include <string_view>

#include "app/chat/talk.h"
#include "app/chat/truncation.h"
#include "app/grammar/fields.h"
#include "app/request/request_error.h"

namespace wherry::app {

namespace {

constexpr int64_t kCompletionTokens = 16;  // OpenAI's default of max_tokens for completions
constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;  // odd, so that choices get different seeds
constexpr size_t kBytesPerToken = 32;  // upper bound on the average of a long text, in any language

// Whether a text certainly exceeds the context, so that it need not be tokenized.
bool certainly_long(const std::string& text, size_t context) {
  return text.size() > size_t{4} * context * kBytesPerToken && text.size() > 65536;
}

// The error of a prompt and an output that exceed the context, in the words that clients search for
// (ContextOverflow of runtime_py/errors.py). least: "at least " if the prompt may have more tokens.
RequestError overflow(int64_t context, int64_t prompt, int64_t output, const std::string& field,
                      const std::string& hint, const std::string& least = "") {
  return RequestError(
      "This model's maximum context length is " + std::to_string(context) +
          " tokens. However, you requested " + least + std::to_string(prompt + output) +
          " tokens (" + least + std::to_string(prompt) + " in the " + field + ", " +
          std::to_string(output) + " in the completion). Please reduce the length " + "of the " +
          field + " or completion. " + hint + (hint.empty() ? "" : " ") +
          "(context_length_exceeded)",
      field, "context_length_exceeded");
}

std::vector<int32_t> encoded(const Model& model, const std::string& text, const char* field,
                             bool add_special_tokens) {
  const auto context = static_cast<size_t>(model.abilities.context);
  if (certainly_long(text, context)) {
    throw overflow(model.abilities.context, model.abilities.context + 1, 1, field,
                   std::string("The ") + field + " has " + std::to_string(Value(text).chars()) +
                       " characters.",
                   "at least ");
  }
  return model.abilities.tokenizer->encode(text, add_special_tokens);
}

void check_prompt(const std::vector<int32_t>& prompt, int64_t output, const char* field,
                  const Abilities& model) {
  if (prompt.empty()) {
    throw RequestError(std::string(field) + " is empty; the model needs at least one token", field);
  }
  const auto size = static_cast<int64_t>(prompt.size());
  output = std::max<int64_t>(output, 1);
  if (size + output > model.context) {
    const bool messages = std::string_view(field) == "messages";
    throw overflow(model.context, size, output, field,
                   messages ? "truncation: \"auto\" drops the oldest turns." : "");
  }
  const int32_t worst = *std::max_element(prompt.begin(), prompt.end());
  if (worst >= model.vocab_size || *std::min_element(prompt.begin(), prompt.end()) < 0) {
    throw RequestError(std::string(field) + " holds token " + std::to_string(worst) +
                           "; ids go from 0 to " + std::to_string(model.vocab_size - 1),
                       field);
  }
}

uint64_t seed_of(const Fields& fields) {
  if (const Value* asked = fields.find("seed")) {
    if (asked->is_integer()) return static_cast<uint64_t>(asked->integer());
    // A seed of more than 63 bits is stored as a double.
    return static_cast<uint64_t>(asked->number());
  }
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

void add_jobs(Plan& plan, const std::vector<std::vector<int32_t>>& prompts, const Fields& fields,
              const Model& model, const char* field) {
  const int32_t asked = plan.sampling.params.max_tokens;
  plan.prompt_tokens = 0;
  for (const auto& prompt : prompts) {
    check_prompt(prompt, asked, field, model.abilities);
    plan.prompt_tokens += static_cast<int64_t>(prompt.size());
  }
  plan.n = static_cast<size_t>(fields.integer("n").value_or(1));
  const uint64_t seed = seed_of(fields);
  for (const auto& prompt : prompts) {
    const auto room =
        static_cast<int32_t>(model.abilities.context - static_cast<int64_t>(prompt.size()));
    for (size_t i = 0; i < plan.n; ++i) {
      plan.jobs.push_back({prompt, seed + plan.jobs.size() * kSeedStep, asked != 0 ? asked : room});
    }
  }
}

void set_common(Plan& plan, const Fields& fields, const Model& model) {
  plan.model = fields.text("model");
  if (plan.model.empty()) plan.model = model.name;
  plan.stream = fields.truth("stream");
  if (const Value* stops = fields.find("stop")) {
    for (const Value& stop : stops->items()) plan.stops.push_back(stop.text());
  }
  const Value* options = fields.find("stream_options");
  plan.include_usage = options != nullptr && Fields(*options).truth("include_usage");
}

void require_text(const Model& model) {
  const Head& head = model.vectors.head;
  if (head.writes_text) return;
  const char* instead = head.kind == HeadKind::kClass ? "\"classify\" or \"rerank\"" : "\"embed\"";
  throw RequestError("This model writes no text: ask for " + std::string(instead), "", "no_text");
}

// Returns the number of tokens of a chat's prompt, or any larger number if it exceeds the context.
int64_t prompt_tokens(const Fields& fields, const Model& model, const std::function<bool()>& gone) {
  const std::string text = Talk(fields, model.dialect).rendered(gone);
  const int64_t context = model.abilities.context;
  if (certainly_long(text, static_cast<size_t>(context))) return context + 1;
  return static_cast<int64_t>(encoded(model, text, "messages", false).size());
}

// Returns a chat whose last message is continued if it says `prefix: true`, which is the word of
// Mistral and DeepSeek for `continue_final_message`.
Fields with_prefix(Fields fields) {
  const Value* messages = fields.find("messages");
  if (messages == nullptr || messages->items().empty()) return fields;
  const Fields last(messages->items().back());
  const Value* prefix = last.find("prefix");
  const bool continues =
      prefix != nullptr && prefix->is(json::Kind::kBool) && prefix->integer() != 0;
  if (last.text("role") != "assistant" || !continues) return fields;
  std::vector<std::pair<Value, Value>> items = fields.object().dict().items;
  items.emplace_back("continue_final_message", true);
  return Fields(json::make_dict(std::move(items)));
}

Plan chat_plan(const Value& request, const Model& model, const std::function<bool()>& gone) {
  Fields checked = with_prefix(checked_chat(request));
  require_text(model);
  const auto [fields, dropped] =
      truncated(std::move(checked), model.abilities.context,
                [&](const Fields& some) { return prompt_tokens(some, model, gone); });
  const Talk talk(fields, model.dialect);
  const std::string text = talk.rendered(gone);
  const std::vector<int32_t> prompt = encoded(model, text, "messages", false);
  const int64_t asked =
      fields.integer("max_completion_tokens").value_or(fields.integer("max_tokens").value_or(0));
  Plan plan{};
  plan.chat = true;
  plan.dropped_messages = dropped;
  plan.logprobs = fields.truth("logprobs");
  const int64_t top = fields.integer("top_logprobs").value_or(0);
  if (top > 0 && !plan.logprobs) {
    throw RequestError("top_logprobs needs logprobs: true", "top_logprobs");
  }
  const Tokenizer& tokenizer = *model.abilities.tokenizer;
  plan.constraint = talk.constraint(text, constraint_of(fields, tokenizer), tokenizer);
  plan.sampling = sampling_of(fields, model.abilities, asked);
  plan.sampling.params.top_logprobs = static_cast<int32_t>(top);
  if (!fields.truth("ignore_eos")) {
    plan.sampling.stop_ids = talk.stop_ids(tokenizer, std::move(plan.sampling.stop_ids));
  }
  plan.continues = fields.truth("continue_final_message");
  plan.shows_reasoning = !fields.has("include_reasoning") || fields.truth("include_reasoning");
  set_common(plan, fields, model);
  plan.reading = talk.reading(text);
  plan.reading.tools.held = plan.constraint.has_value();
  plan.visible = talk.visible(tokenizer);
  plan.named = talk.named();
  add_jobs(plan, {prompt}, fields, model, "messages");
  return plan;
}

std::vector<std::vector<int32_t>> prompts_of(const Value& given, const Model& model) {
  const auto ids_of = [](const Value& list) {
    std::vector<int32_t> made;
    for (const Value& id : list.items()) made.push_back(static_cast<int32_t>(id.integer()));
    return made;
  };
  if (given.is_string()) return {encoded(model, given.text(), "prompt", true)};
  const Values& items = given.items();
  if (items.empty() || items[0].is(json::Kind::kInt)) return {ids_of(given)};
  std::vector<std::vector<int32_t>> made;
  for (const Value& item : items) {
    made.push_back(item.is_string() ? encoded(model, item.text(), "prompt", true) : ids_of(item));
  }
  return made;
}

Plan completion_plan(const Value& request, const Model& model) {
  const Fields fields = checked_completion(request);
  require_text(model);
  const auto prompts = prompts_of(*fields.find("prompt"), model);
  const std::optional<int64_t> limit = fields.integer("max_tokens");
  if (limit && *limit == 0) {
    throw RequestError(
        "max_tokens is 0: nothing would be written. With echo the prompt is, and its logprobs",
        "max_tokens");
  }
  int64_t asked = limit.value_or(kCompletionTokens);
  if (!limit) {  // the caller set no limit, so a context that is too short is not an error
    size_t longest = 0;
    for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
    const int64_t room = model.abilities.context - static_cast<int64_t>(longest);
    asked = std::max<int64_t>(1, std::min(asked, room));
  }
  Plan plan{};
  plan.chat = false;
  plan.logprobs = fields.has("logprobs");
  plan.constraint = constraint_of(fields, *model.abilities.tokenizer);
  plan.sampling = sampling_of(fields, model.abilities, asked);
  plan.sampling.params.top_logprobs = static_cast<int32_t>(fields.integer("logprobs").value_or(0));
  plan.continues = true;
  set_common(plan, fields, model);
  add_jobs(plan, prompts, fields, model, "prompt");
  return plan;
}

}  // namespace

Model model_of(const std::string& name, const Speech& speech, int64_t context, int64_t vocab_size) {
  const Dialect* dialect = speech.dialect.get();
  const jinja::ChatTemplate* chat_template = dialect ? &dialect->chat_template() : nullptr;
  return {name,
          {speech.tokenizer.get(), speech.eos_ids, speech.defaults, vocab_size, context},
          dialect,
          {name, speech.tokenizer.get(), chat_template, speech.head, vocab_size, context}};
}

Plan plan_of(const Value& request, const Model& model, const std::function<bool()>& gone) {
  if (request.is_dict() && request.dict().find("messages") == nullptr &&
      request.dict().find("prompt") != nullptr) {
    return completion_plan(request, model);
  }
  return chat_plan(request, model, gone);
}

}  // namespace wherry::app
