#include "app/chat/plan.h"

#include <algorithm>
#include <random>
#include <string_view>

#include "app/chat/fill_in.h"
#include "app/chat/talk.h"
#include "app/chat/truncation.h"
#include "app/grammar/fields.h"
#include "app/request/request_error.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

constexpr int64_t kCompletionTokens = 16;  // OpenAI's default of max_tokens for completions
constexpr size_t kMaxPredicted = 16;  // characters of a prediction for each token of the context
constexpr int64_t kMaxLogprobs = 1 << 21;  // in all choices of a request, of about 60 bytes each
constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;  // odd, so that choices get different seeds
constexpr size_t kBytesPerToken = 32;  // upper bound on the average of a long text, in any language

// Whether a text certainly exceeds the context, so that it need not be tokenized.
bool certainly_long(const std::string& text, size_t context) {
  return text.size() > size_t{4} * context * kBytesPerToken && text.size() > 65536;
}

// The error of a prompt and an output that exceed the context, in the words that clients search
// for. least: "at least " if the prompt may have more tokens.
RequestError overflow(int64_t context, int64_t prompt, int64_t output, const std::string& field,
                      const std::string& hint, const std::string& least = "") {
  RequestError error("This model's maximum context length is " + std::to_string(context) +
                         " tokens. However, you requested " + least +
                         std::to_string(prompt + output) + " tokens (" + least +
                         std::to_string(prompt) + " in the " + field + ", " +
                         std::to_string(output) + " in the completion). Please reduce the length " +
                         "of the " + field + " or completion. " + hint + (hint.empty() ? "" : " ") +
                         "(context_length_exceeded)",
                     field, "context_length_exceeded");
  error.overflow = Overflow{context, prompt, output};
  return error;
}

std::vector<int32_t> encoded(const Model& model, const std::string& text, const char* field,
                             bool add_special_tokens) {
  const auto context = static_cast<size_t>(model.abilities.context);
  const auto too_long = [&](int64_t at_least) {
    return overflow(model.abilities.context, at_least, 1, field,
                    std::string("The ") + field + " has " + std::to_string(Value(text).chars()) +
                        " characters.",
                    "at least ");
  };
  if (certainly_long(text, context)) throw too_long(model.abilities.context + 1);
  try {
    return model.abilities.tokenizer->encode_at_most(text, add_special_tokens,
                                                     model.abilities.context);
  } catch (const text::TooManyTokens& many) {
    throw too_long(many.at_least);
  }
}

// Checks that a source and an output fit, each into the context.
void check_source(int64_t source, int64_t output, const Model& model) {
  const int64_t context = model.abilities.context;
  if (source > context) {
    throw RequestError("This model reads sources of up to " + std::to_string(context) +
                           " tokens; prompt has " + std::to_string(source) + ". Shorten it.",
                       "prompt", "context_length_exceeded");
  }
  const int64_t room = context - static_cast<int64_t>(model.decoder_start.size());
  if (output > room) {
    throw RequestError("This model writes up to " + std::to_string(room) +
                           " tokens; max_tokens is " + std::to_string(output),
                       "max_tokens", "context_length_exceeded");
  }
}

void check_prompt(const std::vector<int32_t>& prompt, int64_t output, const char* field,
                  const Model& given) {
  const Abilities& model = given.abilities;
  if (prompt.empty()) {
    throw RequestError(std::string(field) + " is empty; the model needs at least one token", field);
  }
  const auto size = static_cast<int64_t>(prompt.size());
  if (!given.decoder_start.empty()) {
    check_source(size, output, given);
  } else if (output = std::max<int64_t>(output, 1); size + output > model.context) {
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

// Refuses more log probabilities than memory has room for, counted over all choices.
void check_logprobs(const Plan& plan, const Model& model) {
  const wherry_params& params = plan.sampling.params;
  const int64_t each = plan.logprobs ? params.top_logprobs + 1 : 0;
  int64_t tokens = 0, of_prompts = 0;
  for (const Job& job : plan.jobs) {
    tokens += job.max_tokens;
    of_prompts += static_cast<int64_t>(job.prompt.size()) * (params.prompt_logprobs + 1);
  }
  const int64_t most =
      std::max(kMaxLogprobs, model.abilities.context * (WHERRY_MAX_TOP_LOGPROBS + 1));
  if (each * tokens + of_prompts <= most) return;
  const std::string name = plan.chat ? "top_logprobs" : "logprobs";
  std::string counts;
  if (each * tokens > 0) {
    counts = "n x max_tokens x (" + name + " + 1) is " + std::to_string(each * tokens);
  }
  if (of_prompts > 0) {
    counts += (counts.empty() ? "" : " and ") +
              std::string("n x the prompt's tokens x (prompt_logprobs + 1) is ") +
              std::to_string(of_prompts);
  }
  throw RequestError(counts + ", of " + std::to_string(plan.jobs.size()) + " outputs; at most " +
                         std::to_string(most) +
                         " log probabilities are given. Ask for fewer outputs, tokens or "
                         "alternatives.",
                     each > 0 ? name : "prompt_logprobs");
}

void add_jobs(Plan& plan, const std::vector<std::vector<int32_t>>& prompts, const Fields& fields,
              const Model& model, const char* field) {
  const int32_t asked = plan.sampling.params.max_tokens;
  plan.prompt_tokens = 0;
  for (const auto& prompt : prompts) {
    check_prompt(prompt, asked, field, model);
    plan.prompt_tokens += static_cast<int64_t>(prompt.size());
  }
  plan.n = static_cast<size_t>(fields.integer("n").value_or(1));
  const uint64_t seed = seed_of(fields);
  for (const auto& prompt : prompts) {
    Job job{prompt, {}, 0, asked};
    if (!model.decoder_start.empty()) {
      job.source = std::move(job.prompt);
      job.prompt = model.decoder_start;
    }
    if (asked == 0) {
      job.max_tokens =
          static_cast<int32_t>(model.abilities.context - static_cast<int64_t>(job.prompt.size()));
    }
    for (size_t i = 0; i < plan.n; ++i) {
      job.seed = seed + plan.jobs.size() * kSeedStep;
      plan.jobs.push_back(job);
    }
  }
  check_logprobs(plan, model);
}

void set_common(Plan& plan, const Fields& fields, const Model& model) {
  plan.model = fields.text("model");
  if (plan.model.empty()) plan.model = model.name;
  plan.stream = fields.truth("stream");
  if (const Value* stops = fields.find("stop")) {
    for (const Value& stop : stops->items()) plan.stops.push_back(stop.text());
  }
  plan.keeps_stops = fields.truth("include_stop_str_in_output");
  if (const Value* ids = plan.keeps_stops ? fields.find("stop_token_ids") : nullptr) {
    for (const Value& id : ids->items()) {
      plan.shown_ids.push_back(static_cast<int32_t>(id.integer()));
    }
  }
  plan.prompt_logprobs = fields.has("prompt_logprobs");
  const Value* options = fields.find("stream_options");
  plan.include_usage = options != nullptr && Fields(*options).truth("include_usage");
}

void require_text(const Model& model) {
  const Head& head = model.vectors.head;
  if (head.writes_text) return;
  if (head.kind == HeadKind::kClass) {
    throw RequestError(
        "This model gives classes or scores and writes no text: POST /classify or /v1/rerank, or "
        "\"task\": \"classify\" or \"rerank\"",
        "", "no_text");
  }
  throw RequestError(
      "This model gives embeddings and writes no text: POST /v1/embeddings, or \"task\": \"embed\"",
      "", "no_text");
}

// Limits the outputs as the host says. Throws RequestError if the prompt alone fills the context.
void limit_jobs(Plan& plan, const RequestOptions& options) {
  plan.room = plan.jobs.empty() ? 0 : plan.jobs[0].max_tokens;
  for (Job& job : plan.jobs) {
    int64_t most = job.max_tokens;
    if (options.context > 0) {  // the host's limits stand for the request's own, and its default
      const auto size = static_cast<int64_t>(job.prompt.size());
      if (size >= options.context) {
        throw overflow(options.context, size, 1, options.context_field, "");
      }
      most = options.context - size;
    }
    if (options.max_tokens > 0) most = std::min(most, options.max_tokens);
    job.max_tokens = static_cast<int32_t>(options.prompt_only ? 1 : most);
  }
}

void require_chat(const Model& model) {
  if (model.decoder_start.empty()) return;
  throw RequestError(
      "This model reads a source, no chat. Use completions: POST /v1/completions, or "
      "engine.completions.create(prompt=...).",
      "messages", "no_chat_template");
}

// Returns the number of tokens of a chat's prompt, or any larger number if it exceeds the context.
int64_t prompt_tokens(const Fields& fields, const Model& model, const std::function<bool()>& gone) {
  const std::string text = Talk(fields, model.dialect).rendered(gone);
  const int64_t context = model.abilities.context;
  try {
    return static_cast<int64_t>(encoded(model, text, "messages", false).size());
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

// Returns what an output has to follow, as JSON for a host that makes grammars by itself: members
// of an object, to which plan_of adds the tenant.
Constraint host_constraint(const Value& fields, const Value& chat) {
  return {json::to_json(json::make_dict({{"fields", fields}, {"chat", chat}})), {}, ""};
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
  std::vector<int32_t> prompt = {0};
  std::string text;
  bool refused = false;
  const auto [fields, dropped] = [&] {
    try {
      return truncated(checked, options.context > 0 ? options.context : model.abilities.context,
                       [&](const Fields& some) { return prompt_tokens(some, model, gone); });
    } catch (const RequestError& error) {
      if (!options.prompt_only || error.code() != "chat_template") throw;
      return Truncated{checked, 0};
    }
  }();
  const Talk talk(fields, model.dialect);
  try {
    text = talk.rendered(gone, &plan.adapted);
    prompt = encoded(model, text, "messages", false);
  } catch (const RequestError& error) {
    // Clients send the instructions ahead, of which some templates make no prompt. The core has no
    // empty requests, so it computes one token.
    if (!options.prompt_only || error.code() != "chat_template") throw;
    refused = true;
  }
  const int64_t asked =
      fields.integer("max_completion_tokens").value_or(fields.integer("max_tokens").value_or(0));
  plan.chat = true;
  plan.ignored = fields.unknown();
  for (std::string& name : talk.unused()) plan.ignored.push_back(std::move(name));
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
    const auto more = talk.requirements(text, !constraining.dict().items.empty(), tokenizer);
    if (more) plan.constraint = host_constraint(constraining, *more);
  } else {
    plan.constraint = talk.constraint(text, constraint_of(fields, tokenizer), tokenizer);
  }
  plan.sampling = sampling_of(fields, model.abilities, asked);
  plan.sampling.params.top_logprobs = static_cast<int32_t>(top);
  if (!fields.truth("ignore_eos")) {
    plan.sampling.stop_ids = talk.stop_ids(tokenizer, std::move(plan.sampling.stop_ids));
  }
  plan.sampling.prediction = predicted_tokens(fields, model);
  plan.continues = fields.truth("continue_final_message");
  plan.shows_reasoning = !fields.has("include_reasoning") || fields.truth("include_reasoning");
  set_common(plan, fields, model);
  plan.reading = talk.reading(text);
  plan.reading.tools.held = plan.constraint.has_value();
  plan.visible = talk.visible(tokenizer);
  plan.custom = talk.custom();
  plan.named = talk.named();
  add_jobs(plan, {prompt}, fields, model, "messages");
  if (refused) plan.prompt_tokens = 0;
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

// Refuses fields that need the prompt among the decoder's tokens.
void refuse_with_source(const Fields& fields) {
  for (const char* name : {"suffix", "echo", "prompt_logprobs"}) {
    const Value* value = fields.find(name);
    const bool flag = value != nullptr && value->is(json::Kind::kBool);
    if (value == nullptr || (flag && value->integer() == 0)) continue;
    if (value->is_string() && value->text().empty()) continue;
    throw RequestError(std::string(name) +
                           " is not supported by this model: its encoder reads the prompt, and "
                           "the output is a text of its own",
                       name, "unsupported_parameter");
  }
}

// Turns prompts with a suffix into fill-in-the-middle prompts; the model fills the gap.
void fill_in(std::vector<std::vector<int32_t>>& prompts, const Fields& fields, const Model& model) {
  const Tokenizer& tokenizer = *model.abilities.tokenizer;
  const FillIn* way = fill_in_of(tokenizer);
  if (way == nullptr) {
    throw RequestError(
        "suffix is not supported by this model: its vocabulary has no tokens to fill gaps with "
        "(such as <|fim_prefix|>)",
        "suffix", "unsupported_parameter");
  }
  if (fields.truth("echo")) throw RequestError("echo and suffix exclude each other", "echo");
  const std::string suffix = fields.text("suffix");
  encoded(model, suffix, "suffix", false);  // checks its length
  for (auto& prompt : prompts) {
    prompt = fill_in_prompt(tokenizer, model.abilities.eos_ids, *way, std::move(prompt), suffix);
  }
}

Plan completion_plan(const Value& request, const Model& model) {
  const Fields fields = checked_completion(request);
  require_text(model);
  auto prompts = prompts_of(*fields.find("prompt"), model);
  const bool echo = fields.truth("echo"), fills = !fields.text("suffix").empty();
  if (!model.decoder_start.empty()) refuse_with_source(fields);
  if (fills) fill_in(prompts, fields, model);
  const std::optional<int64_t> limit = fields.integer("max_tokens");
  if (limit && *limit == 0 && !echo) {
    throw RequestError(
        "max_tokens is 0: nothing would be written. With echo the prompt is, and its logprobs",
        "max_tokens");
  }
  int64_t asked = std::max<int64_t>(limit.value_or(kCompletionTokens), 1);
  if (!limit) {  // the caller set no limit, so a context that is too short is not an error
    size_t longest = model.decoder_start.size();
    for (const auto& prompt : prompts) {
      if (model.decoder_start.empty()) longest = std::max(longest, prompt.size());
    }
    const int64_t room = model.abilities.context - static_cast<int64_t>(longest);
    asked = std::max<int64_t>(1, std::min(asked, room));
  }
  Plan plan{};
  plan.chat = false;
  plan.ignored = fields.unknown();
  plan.logprobs = fields.has("logprobs");
  const Value constraining = constraining_fields(fields);
  if (!model.host_makes_grammars) {
    plan.constraint = constraint_of(fields, *model.abilities.tokenizer);
  } else if (!constraining.dict().items.empty()) {
    plan.constraint = host_constraint(constraining, Value());
  }
  plan.sampling = sampling_of(fields, model.abilities, asked);
  wherry_params& params = plan.sampling.params;
  params.top_logprobs = static_cast<int32_t>(fields.integer("logprobs").value_or(0));
  if (echo && plan.logprobs) {
    params.prompt_logprobs = std::max(params.prompt_logprobs, params.top_logprobs);
  }
  if (fills && !fields.truth("ignore_eos")) {
    add_fill_in_stops(*model.abilities.tokenizer, plan.sampling.stop_ids);
  }
  plan.continues = model.decoder_start.empty();
  plan.echo = echo;
  plan.writes = !limit || *limit != 0;
  set_common(plan, fields, model);
  add_jobs(plan, prompts, fields, model, "prompt");
  return plan;
}

}  // namespace

Model model_of(const std::string& name, const Speech& speech, int64_t context, int64_t vocab_size) {
  // The prompt of an encoder-decoder is a source, which is no conversation.
  const Dialect* dialect = speech.decoder_start.empty() ? speech.dialect.get() : nullptr;
  const jinja::ChatTemplate* chat_template = dialect ? &dialect->chat_template() : nullptr;
  return {name,
          {speech.tokenizer.get(), speech.eos_ids, speech.defaults, vocab_size, context},
          dialect,
          {name, speech.tokenizer.get(), chat_template, speech.head, vocab_size, context},
          speech.decoder_start};
}

std::vector<int32_t> chat_prompt(const Value& request, const Model& model, bool add_special_tokens,
                                 const std::function<bool()>& gone) {
  const Fields fields = with_prefix(checked_chat(request));
  require_chat(model);
  return encoded(model, Talk(fields, model.dialect).rendered(gone), "messages", add_special_tokens);
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
