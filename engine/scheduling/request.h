// The state of one request. Its phases are waiting, (encoding,) prefilling, running, finished;
// preemption returns it to waiting.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/kv_cache.h"
#include "sampling/sampler.h"
#include "scheduling/image_span.h"
#include "scheduling/request_mask.h"
#include "speculation/draft_length.h"
#include "speculation/prompt_lookup.h"
#include "wherry.h"

namespace wherry {

enum class RequestState {
  kWaiting,     // the request is in the queue and has no pages
  kEncoding,    // the request is admitted; the encoder has not read its source yet
  kPrefilling,  // the request is admitted; some of its tokens are not in the KV cache yet
  kRunning,     // every token but the newest is in the KV cache
  kFinished,    // the last event is queued; the engine is about to remove the request
};

// Times of a request in seconds on the engine's clock; 0 means that the event has not happened yet.
struct RequestTimes {
  double added = 0, started = 0, first_token = 0;
};

struct Request {
  // Checks the parameters, and takes ownership of params.mask. Throws WHERRY_INVALID_ARGUMENT for
  // parameters out of range.
  Request(uint64_t id, std::vector<int32_t> prompt, const wherry_params& params, int64_t vocab,
          int64_t context);

  // Returns the number of tokens that are known but not in the KV cache; the next step computes
  // some or all of them.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t output_size() const { return static_cast<int64_t>(tokens.size()) - prompt_size; }
  // Returns the most tokens that the request ever has in the KV cache: the last output token is
  // never computed.
  int64_t most_cached() const { return embed ? prompt_size : prompt_size + max_output - 1; }
  // True if it is a prompt token whose logprob was not reported yet.
  bool wants_logprob_of(int64_t token) const {
    return !embed && params.prompt_logprobs >= 0 && token >= prompt_reported && token < prompt_size;
  }
  // Whether the pending row at this position needs a result row (logits).
  bool wants_row(int64_t position) const;
  int64_t results_of(int64_t rows) const;  // result rows that the next `rows` rows need

  // Adds a token, sampled or given, to the output; returns WHERRY_RUNNING, WHERRY_STOP or
  // WHERRY_LENGTH.
  wherry_finish append(const Sample& sample);
  wherry_finish append(int32_t token);
  SamplingInput sampling() const { return {params, sampler_state, tokens, prompt_size}; }
  // Returns what the prefix cache knows the tokens by: the tokens, with the names of images in the
  // place of their rows.
  const std::vector<int32_t>& keys() const { return keys_.empty() ? tokens : keys_; }
  TokenSpan span() const { return {space, keys(), computed}; }
  // Returns the first image that ends after this position; null if there is none.
  const ImageSpan* image_from(int64_t position) const;
  // Returns the image to which the next row belongs; null if it belongs to none.
  const ImageSpan* next_image() const;
  // Returns the place of the row at this position on M-RoPE's axes: time, height and width.
  std::array<int32_t, 3> rope_position(int64_t position) const;
  int64_t rope_delta() const;  // what M-RoPE adds to the positions of output tokens: <= 0
  // Returns the last position that the row at this one attends to, where the rows of an image
  // attend to all of it.
  int64_t last_visible(int64_t position) const;
  // Returns the number of tokens before the first image; those of all without images.
  int64_t text_size() const;
  // Gives the images their names. Call it before the prefix cache is used.
  void name_images(ImageNames& names);

  const uint64_t id;
  // The mask is declared first, so that it is released if another field's constructor throws.
  const std::unique_ptr<RequestMask> mask;
  const SamplingParams params;
  const int64_t prompt_size;
  const int64_t max_output;  // max_tokens, or the rest of the context if that is shorter
  const int32_t priority;
  const uint64_t user;
  const PrefixSpace space;
  const bool embed;
  const std::vector<int32_t> source;  // input tokens of the encoder; empty for decoder-only models

  uint64_t arrival = 0;  // sequence number of the request's arrival
  RequestState state = RequestState::kWaiting;
  bool aborted = false;           // true if the request was aborted during a step that contains it
  std::vector<int32_t> tokens;    // prompt and output tokens
  std::vector<ImageSpan> images;  // ascending; set after checks, before name_images()
  int64_t computed = 0;           // number of leading tokens that are in the KV cache
  // The maximum of `computed` so far, because preemption resets `computed`; tokens up to it are
  // recomputed, not new.
  int64_t prefilled = 0;
  // Number of prompt tokens whose logprobs were reported; the first token has none.
  int64_t prompt_reported = 1;
  // Tokens in whole pages after which another prompt differs: a recurrent state leaves a snapshot
  // there for the next such prompt; 0 if there is no such place.
  int64_t branch = 0;
  int64_t saved = 0;     // tokens up to the last snapshot of a recurrent state
  int64_t on_disk = 0;   // pages after the computed ones that the disk tier stores
  int64_t restored = 0;  // pages that the step in flight reads back from disk
  SequenceState sequence;
  SamplerState sampler_state;
  PromptLookup lookup;
  DraftLength drafts;
  int32_t cached_tokens = 0, drafted_tokens = 0, accepted_tokens = 0;
  RequestTimes times;

 private:
  wherry_finish append(int32_t token, const Sample* sample);

  std::vector<int32_t> keys_;  // empty if the request has no images
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_REQUEST_H_
