#include "app/chat/plan_jobs.h"

#include <random>

#include "app/chat/limits.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;  // odd, so that choices get different seeds

uint64_t seed_of(const Fields& fields) {
  if (const Value* seed = fields.find("seed")) {
    if (seed->is_integer()) return static_cast<uint64_t>(seed->integer());
    // A seed of more than 63 bits is stored as a double.
    return static_cast<uint64_t>(seed->number());
  }
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace

void add_jobs(Plan& plan, const std::vector<std::vector<int32_t>>& prompts, const Fields& fields,
              const Model& model, const char* field) {
  const int32_t max_tokens = plan.sampling.params.max_tokens;
  plan.prompt_tokens = 0;
  for (const auto& prompt : prompts) {
    check_prompt(prompt, max_tokens, field, model);
    plan.prompt_tokens += static_cast<int64_t>(prompt.size());
  }
  plan.n = static_cast<size_t>(fields.integer("n").value_or(1));
  const uint64_t seed = seed_of(fields);
  for (const auto& prompt : prompts) {
    Job job{prompt, {}, 0, max_tokens};
    if (!model.decoder_start.empty()) {
      job.source = std::move(job.prompt);
      job.prompt = model.decoder_start;
    }
    if (max_tokens == 0) {
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

Constraint host_constraint(const Value& fields, const Value& chat) {
  return {json::to_json(json::make_dict({{"fields", fields}, {"chat", chat}})), {}, ""};
}

}  // namespace wherry::app
