// One request: waiting -> (encoding ->) prefilling -> running -> finished, and back to waiting when
// the scheduler preempts it.
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
  kWaiting,     // in the queue, without pages
  kEncoding,    // admitted; the encoder has not read its source yet
  kPrefilling,  // admitted; some of its tokens are not in the KV cache yet
  kRunning,     // every token but the newest is in the KV cache
  kFinished,    // its last event is queued; the engine is about to remove it
};

// Times in seconds on the engine's clock; 0: not yet.
struct RequestTimes {
  double added = 0, started = 0, first_token = 0;
};

struct Request {
  // Takes ownership of params.mask. Throws WHERRY_INVALID_ARGUMENT for parameters out of range.
  Request(uint64_t id, std::vector<int32_t> prompt, const wherry_params& params, int64_t vocab,
          int64_t context);

  // Tokens that are known but not in the KV cache; the next step computes some or all of them.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t output_size() const { return static_cast<int64_t>(tokens.size()) - prompt_size; }
  // The most tokens that it ever has in the KV cache: the last output token is never computed.
  int64_t most_cached() const { return embed ? prompt_size : prompt_size + max_output - 1; }
  bool wants_logprob_of(int64_t token) const {  // prompt logprobs not yet reported
    return !embed && params.prompt_logprobs >= 0 && token >= prompt_reported && token < prompt_size;
  }
  // Whether the pending row at this position needs a result.
  bool wants_row(int64_t position) const;

  // Adds a token to the output, sampled or given; WHERRY_RUNNING, WHERRY_STOP or WHERRY_LENGTH.
  wherry_finish append(const Sample& sample);
  wherry_finish append(int32_t token);
  SamplingInput sampling() const { return {params, sampler_state, tokens, prompt_size}; }
  TokenSpan span() const { return {space, tokens, computed}; }

  const uint64_t id;
  const std::unique_ptr<RequestMask> mask;  // first, so that it is released if another field throws
  const SamplingParams params;
  const int64_t prompt_size;
  const int64_t max_output;  // tokens: max_tokens, or the rest of the context if that is less
  const int32_t priority;
  const uint64_t user;
  const PrefixSpace space;
  const bool embed;
  const std::vector<int32_t> source;  // input of the encoder

  uint64_t arrival = 0;  // sequence number
  RequestState state = RequestState::kWaiting;
  bool aborted = false;         // during a step with this request
  std::vector<int32_t> tokens;  // prompt and output
  int64_t computed = 0;         // number of leading ones in the KV cache
  int64_t prefilled = 0;        // the maximum of `computed`: after preemption, less is recomputed
  int64_t prompt_reported = 1;  // prompt tokens whose logprobs were reported; the first has none
  int64_t on_disk = 0;          // pages after the computed ones that the disk tier has
  int64_t restored = 0;         // pages that the step in flight restored from disk
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
