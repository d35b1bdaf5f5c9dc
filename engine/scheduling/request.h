// One request: waiting -> prefilling -> running -> finished.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_H_

#include <cstdint>
#include <vector>

#include "cache/page_pool.h"
#include "sampling/sampler.h"
#include "wherry.h"

namespace wherry {

enum class RequestState {
  kWaiting,     // in the queue, no pages
  kPrefilling,  // admitted; part of its prompt is not in the cache yet
  kRunning,     // every token but the newest is in the cache
  kFinished,    // its last event is queued; about to be removed
};

struct Request {
  Request(uint64_t id, std::vector<int32_t> prompt, SamplingParams params, int64_t context,
          PagePool& pool, int32_t page_size);

  // Tokens that are known but not in the cache yet; the next step computes some or all of them.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t output_size() const { return static_cast<int64_t>(tokens.size()) - prompt_size; }
  // Pages that it holds at most, at any time. The last token is never written to the cache.
  int64_t most_pages() const { return pages_for(prompt_size + max_output - 1, page_size); }
  // Adds a token to the output, sampled or given; WHERRY_RUNNING, WHERRY_STOP or WHERRY_LENGTH.
  wherry_finish append(const Sample& sample);
  wherry_finish append(int32_t token);
  SamplingInput sampling() const { return {params, sampler_state, tokens, prompt_size}; }

  const uint64_t id;
  const SamplingParams params;
  const int64_t prompt_size;
  const int64_t max_output;  // tokens: max_tokens and the context's rest, whichever is less
  const int32_t page_size;

  RequestState state = RequestState::kWaiting;
  bool aborted = false;         // while a step with it is under way
  std::vector<int32_t> tokens;  // prompt and output
  int64_t computed = 0;         // of them, in the cache
  Sequence sequence;
  SamplerState sampler_state;

 private:
  wherry_finish append(int32_t token, const Sample* sample);
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_REQUEST_H_
