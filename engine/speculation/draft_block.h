// Proposes draft tokens with the block of multi-token prediction that is part of the model: the
// library's entry `draft` (docs/design/compiled-library.md).
//
// For a token at position i the block reads the hidden state of position i - 1 and its own keys and
// values of all positions before, which `forward` writes with the model's. All of it lies in the
// sequence's pages, so the block has no state of its own. It appends a draft token's hidden state,
// keys and values behind the computed tokens; `forward` overwrites them when it verifies the token.
#ifndef WHERRY_ENGINE_SPECULATION_DRAFT_BLOCK_H_
#define WHERRY_ENGINE_SPECULATION_DRAFT_BLOCK_H_

#include <vector>

#include "model/row_sampler.h"
#include "speculation/drafter.h"

namespace wherry {

class DraftBlock : public Drafter {
 public:
  explicit DraftBlock(const BatchShape& shape) : shape_(shape) {}

  void propose(std::vector<DraftJob>& jobs, Session& session) override;
  // The block's part of image rows is in the pages, as that of other rows.
  bool reads_images() const override { return true; }
  void remove(uint64_t) override {}
  void clear() override {}

 private:
  Batch batch_of(const std::vector<DraftJob*>& open, const Session& session) const;

  const BatchShape shape_;
  RowSampler sampler_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SPECULATION_DRAFT_BLOCK_H_
