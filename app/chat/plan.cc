#include "app/chat/plan.h"

#include <algorithm>

#include "app/chat/chat_tools.h"
#include "app/chat/completion_plan.h"
#include "app/chat/image_prompt.h"
#include "app/chat/limits.h"
#include "app/chat/plan_jobs.h"
#include "app/chat/truncation.h"
#include "app/grammar/fields.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"

namespace wherry::app {

namespace {

constexpr size_t kMaxPredicted = 16;  // characters of a prediction for each token of the context

void require_chat(const Model& model) {
  if (model.decoder_start.empty()) return;
  throw RequestError(
      "This model reads a source, no chat. Use completions: POST /v1/completions, or "
      "engine.completions.create(prompt=...).",
      "messages", "no_chat_template");
}

// Returns the number of tokens of a chat's prompt, or any larger number if it exceeds the context.
int64_t prompt_tokens(const Fields& fields, const Model& model, RequestImages& images,
                      const std::function<bool()>& gone) {
  const ChatTools tools(fields, model.chat_format, model.vision);
  const int64_t context = model.abilities.context;
  try {
    return static_cast<int64_t>(prompt_of(tools, model, images, gone).ids.size());
  } catch (const RequestError& error) {
    if (!error.overflow) throw;
    return context + 1;
  }
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
  return Fields(json::make_dict(std::move(items)), fields.unknown());
}

// Returns the tokens that the output probably repeats; none if the request predicts none.
std::vector<int32_t> predicted_tokens(const Fields& fields, const Model& model) {
  const Value* prediction = fields.find("prediction");
  if (prediction == nullptr) return {};
  const Value& content = *prediction->dict().find("content");
  std::string text = content.is_string() ? content.text() : "";
  for (const Value& part : content.is_string() ? Values() : content.items()) {
    text += Fields(part).text("text");
  }
  const auto context = static_cast<size_t>(model.abilities.context);
  if (unicode::count_code_points(text) > kMaxPredicted * context) {
    text.resize(unicode::byte_of(text, kMaxPredicted * context));
  }
  std::vector<int32_t> ids = model.abilities.tokenizer->encode(text, false);
  if (ids.size() > context) ids.resize(context);
  return ids;
}

Plan chat_plan(const Value& request, const Model& model, const std::function<bool()>& gone,
               const RequestOptions& options) {
  const Fields checked = with_prefix(checked_chat(request));
  require_text(model);
  require_chat(model);
  Plan plan{};
  RequestImages images(model.vision);
  ChatPrompt prompt{"", {0}, nullptr};
  bool refused = false;
  const auto [fields, dropped] = [&] {
    try {
      return truncated(
          checked, options.context > 0 ? options.context : model.abilities.context,
          [&](const Fields& some) { return prompt_tokens(some, model, images, gone); });
    } catch (const RequestError& error) {
      if (!options.prompt_only || error.code() != "chat_template") throw;
      return Truncated{checked, 0};
    }
  }();
  const ChatTools tools(fields, model.chat_format, model.vision);
  try {
    prompt = prompt_of(tools, model, images, gone, false, &plan.adapted);
  } catch (const RequestError& error) {
    // Clients send the instructions ahead, of which some templates make no prompt. The core has no
    // empty requests, so it computes one token.
    if (!options.prompt_only || error.code() != "chat_template") throw;
    refused = true;
  }
  const int64_t max_tokens =
      fields.integer("max_completion_tokens").value_or(fields.integer("max_tokens").value_or(0));
  const std::string& text = prompt.text;
  plan.chat = true;
  plan.images = prompt.images;
  plan.ignored = fields.unknown();
  for (std::string& name : tools.unused()) plan.ignored.push_back(std::move(name));
  std::sort(plan.ignored.begin(), plan.ignored.end());
  plan.dropped_messages = dropped;
  plan.logprobs = fields.truth("logprobs");
  const int64_t top = fields.integer("top_logprobs").value_or(0);
  if (top > 0 && !plan.logprobs) {
    throw RequestError("top_logprobs needs logprobs: true", "top_logprobs");
  }
  const Tokenizer& tokenizer = *model.abilities.tokenizer;
  if (model.host_makes_grammars) {
    const Value constraining = constraining_fields(fields);
    const auto more = tools.requirements(text, !constraining.dict().items.empty(), tokenizer);
    if (more) plan.constraint = host_constraint(constraining, *more);
  } else {
    plan.constraint = tools.constraint(text, constraint_of(fields, tokenizer), tokenizer);
  }
  plan.sampling = sampling_of(fields, model.abilities, max_tokens);
  plan.sampling.params.top_logprobs = static_cast<int32_t>(top);
  if (!fields.truth("ignore_eos")) {
    plan.sampling.stop_ids = tools.stop_ids(tokenizer, std::move(plan.sampling.stop_ids));
  }
  plan.sampling.prediction = predicted_tokens(fields, model);
  plan.continues = fields.truth("continue_final_message");
  plan.shows_reasoning = !fields.has("include_reasoning") || fields.truth("include_reasoning");
  set_common(plan, fields, model);
  plan.reading = tools.reading(text);
  plan.reading.tools.constrained = plan.constraint.has_value();
  plan.visible = tools.visible(tokenizer);
  plan.custom = tools.custom();
  plan.named = tools.named();
  add_jobs(plan, {prompt.ids}, fields, model, "messages");
  if (refused) plan.prompt_tokens = 0;
  return plan;
}

}  // namespace

Model model_of(const std::string& name, const TextInterface& text_interface, int64_t context,
               int64_t vocab_size) {
  // The prompt of an encoder-decoder is a source, which is no conversation.
  const ChatFormat* chat_format =
      text_interface.decoder_start.empty() ? text_interface.chat_format.get() : nullptr;
  const jinja::ChatTemplate* chat_template = chat_format ? &chat_format->chat_template() : nullptr;
  return {name,
          {text_interface.tokenizer.get(), text_interface.eos_ids, text_interface.defaults,
           vocab_size, context},
          chat_format,
          {name, text_interface.tokenizer.get(), chat_template, text_interface.head, vocab_size,
           context},
          text_interface.decoder_start,
          text_interface.vision.get()};
}

std::vector<int32_t> chat_prompt(const Value& request, const Model& model, bool add_special_tokens,
                                 const std::function<bool()>& gone) {
  const Fields fields = with_prefix(checked_chat(request));
  require_chat(model);
  RequestImages images(model.vision);
  return prompt_of(ChatTools(fields, model.chat_format, model.vision), model, images, gone,
                   add_special_tokens)
      .ids;
}

Plan plan_of(const Value& request, const Model& model, const std::function<bool()>& gone,
             const RequestOptions& options) {
  bool completes = options.task == "completion";
  if (options.task.empty()) {
    completes = request.is_dict() && request.dict().find("messages") == nullptr &&
                request.dict().find("prompt") != nullptr;
  }
  Plan plan =
      completes ? completion_plan(request, model) : chat_plan(request, model, gone, options);
  if (!options.model.empty()) plan.model = options.model;
  plan.in_parts = options.in_parts;
  plan.include_usage = plan.include_usage || plan.in_parts;
  plan.writes = plan.writes && !options.prompt_only;
  set_owner(options, plan.sampling.params.user, plan.sampling.params.salt);
  if (model.host_makes_grammars && plan.constraint) {
    const std::string tenant = std::to_string(plan.sampling.params.user >> 32);
    plan.constraint->ebnf = R"({"tenant":)" + tenant + "," + plan.constraint->ebnf.substr(1);
  }
  limit_jobs(plan, options);
  return plan;
}

}  // namespace wherry::app
