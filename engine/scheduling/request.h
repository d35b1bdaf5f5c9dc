// One request: waiting -> (encoding ->) prefilling -> running -> finished, and back to waiting when
// its pages are wanted by an older one.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/kv_cache.h"
#include "sampling/sampler.h"
#include "scheduling/request_mask.h"
#include "speculation/draft_length.h"
#include "speculation/prompt_lookup.h"
#include "wherry.h"

namespace wherry {

enum class RequestState {
  kWaiting,     // in the queue; holds no pages
  kEncoding,    // admitted; its source has not been read yet
  kPrefilling,  // admitted; part of its tokens is not in the cache yet
  kRunning,     // every token but the newest is in the cache
  kFinished,    // its last event is queued; about to be removed
};

// When things happened, seconds on the engine's clock; 0: not yet.
struct RequestTimes {
  double added = 0, started = 0, first_token = 0;
};

struct Request {
  // Takes over params.mask. Throws WHERRY_INVALID_ARGUMENT for parameters that are out of range.
  Request(uint64_t id, std::vector<int32_t> prompt, const wherry_params& params, int64_t vocab,
          int64_t context);

  // Tokens that are known but not in the cache yet; the next step computes some or all of them.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t output_size() const { return static_cast<int64_t>(tokens.size()) - prompt_size; }
  // Tokens that it has in the cache at most. The last one of the output is never written there.
  int64_t most_cached() const { return embed ? prompt_size : prompt_size + max_output - 1; }
  bool wants_logprob_of(int64_t token) const {  // of its prompt, and it has not been told yet
    return !embed && params.prompt_logprobs >= 0 && token >= prompt_reported && token < prompt_size;
  }
  // Whether the row of this position, of those that are pending, needs its result.
  bool wants_row(int64_t position) const;

  // Adds a token to the output, sampled or given; WHERRY_RUNNING, WHERRY_STOP or WHERRY_LENGTH.
  wherry_finish append(const Sample& sample);
  wherry_finish append(int32_t token);
  SamplingInput sampling() const { return {params, sampler_state, tokens, prompt_size}; }
  TokenSpan span() const { return {space, tokens, computed}; }

  const uint64_t id;
  const std::unique_ptr<RequestMask> mask;  // first: it is released whatever else fails
  const SamplingParams params;
  const int64_t prompt_size;
  const int64_t max_output;  // tokens: max_tokens and the context's rest, whichever is less
  const int32_t priority;
  const uint64_t user;
  const PrefixSpace space;
  const bool embed;
  const std::vector<int32_t> source;  // what an encoder reads

  uint64_t arrival = 0;  // place in the order of arrival
  RequestState state = RequestState::kWaiting;
  bool aborted = false;         // while a step with it is under way
  std::vector<int32_t> tokens;  // prompt and output
  int64_t computed = 0;         // of them, in the cache
  int64_t prefilled = 0;        // the most that `computed` has been: computing less is done again
  int64_t prompt_reported = 1;  // tokens of the prompt whose logprobs were told; the first has none
  int64_t on_disk = 0;          // pages, from the last whole one of `computed` on, to be read back
  int64_t restored = 0;         // pages, in the step under way
  SequenceState sequence;
  SamplerState sampler_state;
  PromptLookup lookup;
  DraftLength drafts;
  int32_t cached_tokens = 0, drafted_tokens = 0, accepted_tokens = 0;
  RequestTimes times;

 private:
  wherry_finish append(int32_t token, const Sample* sample);
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_REQUEST_H_
