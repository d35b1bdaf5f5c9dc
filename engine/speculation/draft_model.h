// Proposes draft tokens with a smaller model, which has the same vocabulary and its own KV cache.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_MODEL_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_MODEL_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cache/kv_cache.h"
#include "model/model.h"
#include "model/row_sampler.h"
#include "speculation/drafter.h"

namespace wherry {

class DraftModel : public Drafter {
 public:
  // config: the draft model's KV cache gets as many tokens as the target model's.
  DraftModel(std::shared_ptr<const Model> model, const KvCacheConfig& config, int64_t context);

  void propose(std::vector<DraftJob>& jobs, Session& session) override;
  bool reads_images() const override { return false; }
  void remove(uint64_t id) override;
  void clear() override;

 private:
  struct CachedSequence {
    SequenceState sequence;
    PrefixSpace space;
    std::vector<int32_t> tokens;  // tokens that are in the draft model's cache
  };
  struct Turn {  // a job's part of one draft step
    DraftJob* job;
    CachedSequence* cached;
    std::vector<int32_t> text;  // prompt, output and draft tokens to have in the cache
    int64_t rows;
  };

  CachedSequence& cached_for(const DraftJob& job, StateChanges& changes);
  bool join(DraftJob& job, int64_t& rows_left, std::vector<Turn>& turns, StateChanges& changes);
  void step(std::vector<Turn>& turns);
  void take_results(std::vector<Turn>& turns, const Rows& logits);

  const std::shared_ptr<const Model> model_;
  const BatchShape shape_;
  const int64_t context_, max_rows_, max_sequences_;
  KvCache cache_;
  const std::unique_ptr<Session> session_;
  RowSampler sampler_;
  std::unordered_map<uint64_t, CachedSequence> sequences_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_MODEL_H_
