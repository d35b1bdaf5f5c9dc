// Draft tokens from a smaller model with the same vocabulary and a KV cache of its own.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_MODEL_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_MODEL_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cache/kv_cache.h"
#include "model/model.h"
#include "sampling/row_sampler.h"

namespace wherry {

// One sequence that wants draft tokens.
struct DraftJob {
  uint64_t id;
  const SamplingInput input;  // what was sampled so far, and how
  const PrefixSpace& space;
  int64_t most;                       // draft tokens
  std::vector<int32_t> draft_tokens;  // the result: at most so many
};

class DraftModel {
 public:
  // The cache is as large as the target model's, in tokens.
  DraftModel(std::shared_ptr<const Model> model, const KvCacheConfig& config, int64_t context);

  // Proposes for all jobs together, one step of the draft model for each further token. A draft
  // token is drawn as the target model's token will be: greedily, or with the request's own
  // generator, so that two models that agree draw the same.
  void propose(std::vector<DraftJob>& jobs);

  void forget(uint64_t id);  // the request has ended
  void clear();
  double step_seconds() const { return step_seconds_; }  // moving average

 private:
  struct Held {
    SequenceState sequence;
    PrefixSpace space;
    std::vector<int32_t> tokens;  // in the cache
  };
  struct Turn {  // a job in one step
    DraftJob* job;
    Held* held;
    std::vector<int32_t> wanted;  // prompt, output and draft tokens
    int64_t rows;
  };

  Held& held_by(const DraftJob& job, StateChanges& changes);
  bool join(DraftJob& job, int64_t& rows_left, std::vector<Turn>& turns, StateChanges& changes);
  void step(std::vector<Turn>& turns);
  void take_results(std::vector<Turn>& turns, const Rows& logits);

  const std::shared_ptr<const Model> model_;
  const int64_t context_, max_rows_, max_sequences_;
  KvCache cache_;
  const std::unique_ptr<Session> session_;
  RowSampler sampler_;
  std::unordered_map<uint64_t, Held> held_;
  double step_seconds_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_MODEL_H_
