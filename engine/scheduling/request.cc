#include "scheduling/request.h"

#include <algorithm>

namespace wherry {

namespace {

int64_t output_limit(const SamplingParams& params, int64_t prompt, int64_t context) {
  int64_t rest = context - prompt;
  return params.max_tokens == 0 ? rest : std::min<int64_t>(params.max_tokens, rest);
}

}  // namespace

Request::Request(uint64_t id, std::vector<int32_t> prompt, SamplingParams given, int64_t context,
                 PagePool& pool, int32_t page_size)
    : id(id),
      params(std::move(given)),
      prompt_size(static_cast<int64_t>(prompt.size())),
      max_output(output_limit(params, prompt_size, context)),
      page_size(page_size),
      tokens(std::move(prompt)),
      sequence(pool, page_size),
      sampler_state(params, tokens) {}

wherry_finish Request::append(const Sample& sample) { return append(sample.token, &sample); }

wherry_finish Request::append(int32_t token) { return append(token, nullptr); }

wherry_finish Request::append(int32_t token, const Sample* sample) {
  tokens.push_back(token);
  sampler_state.accept(params, tokens, sample);
  if (params.stop_ids.count(token) != 0) return WHERRY_STOP;
  return output_size() >= max_output ? WHERRY_LENGTH : WHERRY_RUNNING;
}

}  // namespace wherry
