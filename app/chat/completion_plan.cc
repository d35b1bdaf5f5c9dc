#include "app/chat/completion_plan.h"

#include <algorithm>

#include "app/chat/fill_in.h"
#include "app/chat/limits.h"
#include "app/chat/plan_jobs.h"
#include "app/grammar/fields.h"
#include "app/request/request_error.h"

namespace wherry::app {

namespace {

constexpr int64_t kCompletionTokens = 16;  // OpenAI's default of max_tokens for completions

std::vector<std::vector<int32_t>> prompts_of(const Value& given, const Model& model) {
  const auto ids_of = [](const Value& list) {
    std::vector<int32_t> result;
    for (const Value& id : list.items()) result.push_back(static_cast<int32_t>(id.integer()));
    return result;
  };
  if (given.is_string()) return {encoded(model, given.text(), "prompt", true)};
  const Values& items = given.items();
  if (items.empty() || items[0].is(json::Kind::kInt)) return {ids_of(given)};
  std::vector<std::vector<int32_t>> result;
  for (const Value& item : items) {
    result.push_back(item.is_string() ? encoded(model, item.text(), "prompt", true) : ids_of(item));
  }
  return result;
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

}  // namespace

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
  int64_t requested = std::max<int64_t>(limit.value_or(kCompletionTokens), 1);
  if (!limit) {  // the caller set no limit, so a context that is too short is not an error
    size_t longest = model.decoder_start.size();
    for (const auto& prompt : prompts) {
      if (model.decoder_start.empty()) longest = std::max(longest, prompt.size());
    }
    const int64_t room = model.abilities.context - static_cast<int64_t>(longest);
    requested = std::max<int64_t>(1, std::min(requested, room));
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
  plan.sampling = sampling_of(fields, model.abilities, requested);
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

}  // namespace wherry::app
