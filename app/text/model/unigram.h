// The Unigram model (Kudo, 2018): finds the most likely segmentation of a piece into tokens
// (Viterbi).
#ifndef WHERRY_APP_TEXT_MODEL_UNIGRAM_H_
#define WHERRY_APP_TEXT_MODEL_UNIGRAM_H_

#include "app/text/model/model.h"
#include "app/text/model/trie.h"
#include "app/text/model/vocabulary.h"

namespace wherry::text {

class Unigram : public Model {
 public:
  explicit Unigram(const Json& json);

  void encode(std::string_view piece, std::vector<int32_t>& ids, Scratch&) const override;
  int32_t find(std::string_view token) const override { return vocabulary_.find(token); }
  std::optional<std::string_view> token(int32_t id) const override { return vocabulary_.token(id); }
  size_t size() const override { return scores_.size(); }
  int32_t largest_id() const override { return vocabulary_.largest_id(); }

 private:
  void find_paths(std::string_view piece, Scratch&) const;
  // Adds unknown tokens for characters without a token, or the token of the whole run if there is
  // one.
  void add_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  std::unique_ptr<const Trie> trie_;
  std::vector<int32_t> bytes_;  // ids of the tokens <0x00> to <0xFF>; empty without byte fallback
  std::optional<int32_t> unknown_;
  double unknown_score_ = 0;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_UNIGRAM_H_
