// The WordPiece model (Schuster and Nakajima, 2012), which repeatedly takes the longest token that
// is a prefix of the rest of the word; and WordLevel, where each word is one token.
#ifndef WHERRY_APP_TEXT_MODEL_WORD_PIECE_H_
#define WHERRY_APP_TEXT_MODEL_WORD_PIECE_H_

#include "app/text/model/model.h"
#include "app/text/model/vocabulary.h"

namespace wherry::text {

class WordPiece : public Model {
 public:
  // word_level: whether the model's type is WordLevel.
  WordPiece(const Json& json, bool word_level);

  void encode(std::string_view piece, std::vector<int32_t>& ids, Scratch&) const override;
  int32_t find(std::string_view token) const override { return vocabulary_.find(token); }
  std::optional<std::string_view> token(int32_t id) const override { return vocabulary_.token(id); }
  size_t size() const override { return vocabulary_.size(); }
  int32_t largest_id() const override { return vocabulary_.largest_id(); }

 private:
  bool split(std::string_view piece, std::vector<int32_t>& ids, std::string& buffer) const;

  Vocabulary vocabulary_;
  std::string prefix_, unknown_name_;
  int32_t unknown_;  // id for an unknown word; if -1, an unknown word is an error
  size_t longest_ = 0;
  bool word_level_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_WORD_PIECE_H_
