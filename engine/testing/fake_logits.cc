#include "testing/fake_logits.h"

#include <algorithm>

#include "sampling/rng.h"

namespace wherry {

uint64_t next_state(uint64_t state, int32_t token) {
  return splitmix64(state, static_cast<uint32_t>(token));
}

uint64_t state_after(const std::vector<int32_t>& tokens) {
  uint64_t state = 0;
  for (int32_t token : tokens) state = next_state(state, token);
  return state;
}

uint64_t view_of(const std::vector<int32_t>& tokens, int64_t window) {
  auto size = static_cast<int64_t>(tokens.size());
  uint64_t view = static_cast<uint64_t>(size);
  for (int64_t i = window == 0 ? 0 : std::max<int64_t>(0, size - window); i < size; ++i) {
    view = splitmix64(view, static_cast<uint64_t>(tokens[static_cast<size_t>(i)]));
  }
  return view;
}

std::vector<float> logits_of(const FakeOptions& options, uint64_t view, int64_t tokens,
                             bool drafts) {
  std::vector<float> logits;
  for (int64_t i = 0; i < options.vocab; ++i) {
    double logit = 6 * uniform(view, static_cast<uint64_t>(i)) - 3;
    logits.push_back(static_cast<float>(options.sharpness * logit));
  }
  // The draft model or block has other logits, and another most likely token, after some texts.
  bool differs = uniform(splitmix64(view, 1), static_cast<uint64_t>(tokens)) >= options.agrees;
  if ((options.seed != 0 || drafts) && differs) std::reverse(logits.begin(), logits.end());
  return logits;
}

std::vector<float> fake_logits(const FakeOptions& options, const std::vector<int32_t>& tokens,
                               const std::vector<int32_t>& source) {
  uint64_t view = options.window_alone ? 0 : view_of(tokens, 0);
  if (options.window > 0) view ^= splitmix64(view_of(tokens, options.window), 1);
  if (options.encoder) view ^= splitmix64(view_of(source, 0), 3);
  if (options.recurrent) view ^= splitmix64(state_after(tokens), 2);
  return logits_of(options, view, static_cast<int64_t>(tokens.size()));
}

std::vector<float> fake_embedding(const std::vector<int32_t>& tokens) {
  std::vector<float> embedding;
  uint64_t view = view_of(tokens, 0);
  for (uint64_t i = 0; i < kFakeEmbedding; ++i) {
    embedding.push_back(static_cast<float>(uniform(view, i)));
  }
  return embedding;
}

}  // namespace wherry
