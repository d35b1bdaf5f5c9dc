// The results of the model for tests, as functions of the tokens that its layers keep.
#ifndef WHERRY_ENGINE_TESTING_FAKE_LOGITS_H_
#define WHERRY_ENGINE_TESTING_FAKE_LOGITS_H_

#include <cstdint>
#include <vector>

#include "testing/fake_options.h"

namespace wherry {

// Returns the state of a recurrent layer after one more token, and after all of these.
uint64_t next_state(uint64_t state, int32_t token);
uint64_t state_after(const std::vector<int32_t>& tokens);

// Returns a hash of the tokens that layers with this window attend to.
uint64_t view_of(const std::vector<int32_t>& tokens, int64_t window);

// drafts: whether the logits are those of a block of multi-token prediction.
std::vector<float> logits_of(const FakeOptions& options, uint64_t view, int64_t tokens,
                             bool drafts = false);

// Returns the logits after `tokens` (and a source, for models that read one), [vocab].
std::vector<float> fake_logits(const FakeOptions& options, const std::vector<int32_t>& tokens,
                               const std::vector<int32_t>& source = {});

constexpr int64_t kFakeEmbedding = 3;  // elements of an embedding
std::vector<float> fake_embedding(const std::vector<int32_t>& tokens);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_LOGITS_H_
