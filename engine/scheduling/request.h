// One request: waiting -> prefilling -> running -> finished.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_H_

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cache/page_pool.h"
#include "wherry.h"

namespace wherry {

// core_params, owned and checked.
struct SamplingParams {
  int32_t max_tokens = 0;
  float temperature = 1;
  float top_p = 1;
  int32_t top_k = 0;
  float min_p = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  uint64_t seed = 0;
  std::unordered_set<int32_t> stop_ids;
  std::vector<std::pair<int32_t, float>> bias;
  int32_t top_logprobs = 0;

  bool penalises() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

// Throws CORE_INVALID_ARGUMENT with every field that is out of its range.
SamplingParams checked_params(const core_params& params, int64_t vocab);

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
  // Adds a sampled token; CORE_RUNNING, CORE_STOP or CORE_LENGTH.
  core_finish append(int32_t token);

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
  std::unordered_map<int32_t, int32_t> counts;  // token -> times in the output; with penalties only
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_REQUEST_H_
