#include "scheduling/request.h"

#include <algorithm>
#include <cmath>

#include "support/error.h"

namespace wherry {

namespace {

void require(bool ok, const char* field, double value, const char* accepted, Problems& problems) {
  if (!ok) problems.add(field, " is ", value, "; accepted is ", accepted);
}

void check_numbers(const core_params& p, Problems& problems) {
  require(p.max_tokens >= 0, "max_tokens", p.max_tokens, ">= 0", problems);
  require(std::isfinite(p.temperature) && p.temperature >= 0, "temperature", p.temperature,
          ">= 0 and finite", problems);
  require(p.top_p > 0 && p.top_p <= 1, "top_p", p.top_p, "(0, 1]", problems);
  require(p.top_k >= 0, "top_k", p.top_k, ">= 0", problems);
  require(p.min_p >= 0 && p.min_p < 1, "min_p", p.min_p, "[0, 1)", problems);
  require(std::isfinite(p.repetition_penalty) && p.repetition_penalty > 0, "repetition_penalty",
          p.repetition_penalty, "> 0 and finite", problems);
  require(std::isfinite(p.presence_penalty), "presence_penalty", p.presence_penalty, "finite",
          problems);
  require(std::isfinite(p.frequency_penalty), "frequency_penalty", p.frequency_penalty, "finite",
          problems);
  require(p.top_logprobs >= 0 && p.top_logprobs <= CORE_MAX_TOP_LOGPROBS, "top_logprobs",
          p.top_logprobs, "0..20", problems);
  if (p.n_stop_ids > 0 && p.stop_ids == nullptr) problems.add("stop_ids is null");
  if (p.n_bias > 0 && (p.bias_ids == nullptr || p.bias_values == nullptr)) {
    problems.add("bias_ids or bias_values is null");
  }
}

int64_t output_limit(const SamplingParams& params, int64_t prompt, int64_t context) {
  int64_t rest = context - prompt;
  return params.max_tokens == 0 ? rest : std::min<int64_t>(params.max_tokens, rest);
}

}  // namespace

SamplingParams checked_params(const core_params& params, int64_t vocab) {
  Problems problems;
  check_numbers(params, problems);
  problems.raise(CORE_INVALID_ARGUMENT, "the request's parameters are wrong");
  SamplingParams result;
  result.max_tokens = params.max_tokens;
  result.temperature = params.temperature;
  result.top_p = params.top_p;
  result.top_k = params.top_k;
  result.min_p = params.min_p;
  result.repetition_penalty = params.repetition_penalty;
  result.presence_penalty = params.presence_penalty;
  result.frequency_penalty = params.frequency_penalty;
  result.seed = params.seed;
  result.top_logprobs = params.top_logprobs;
  for (size_t i = 0; i < params.n_stop_ids; ++i) result.stop_ids.insert(params.stop_ids[i]);
  for (size_t i = 0; i < params.n_bias; ++i) {
    int32_t id = params.bias_ids[i];
    float value = params.bias_values[i];
    if (id < 0 || id >= vocab) {
      problems.add("bias for the token ", id, "; the vocabulary has ", vocab, " of them");
    } else if (std::isnan(value) || value > 1e30f) {
      problems.add("bias of ", value, " for the token ", id, "; accepted is -inf..1e30");
    } else {
      result.bias.emplace_back(id, value);
    }
  }
  problems.raise(CORE_INVALID_ARGUMENT, "the request's parameters are wrong");
  return result;
}

Request::Request(uint64_t id, std::vector<int32_t> prompt, SamplingParams given, int64_t context,
                 PagePool& pool, int32_t page_size)
    : id(id),
      params(std::move(given)),
      prompt_size(static_cast<int64_t>(prompt.size())),
      max_output(output_limit(params, prompt_size, context)),
      page_size(page_size),
      tokens(std::move(prompt)),
      sequence(pool, page_size) {
  if (params.repetition_penalty != 1) {
    for (int32_t token : tokens) counts.emplace(token, 0);
  }
}

core_finish Request::append(int32_t token) {
  tokens.push_back(token);
  if (params.penalises()) ++counts[token];
  if (params.stop_ids.count(token) != 0) return CORE_STOP;
  return output_size() >= max_output ? CORE_LENGTH : CORE_RUNNING;
}

}  // namespace wherry
