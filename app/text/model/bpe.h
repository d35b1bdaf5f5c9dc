// Byte pair encoding (Sennrich et al., 2016): starts with a piece's characters and merges the pair
// with the lowest rank into one token, until no pair can be merged.
#ifndef WHERRY_APP_TEXT_MODEL_BPE_H_
#define WHERRY_APP_TEXT_MODEL_BPE_H_

#include "app/text/model/merges.h"
#include "app/text/model/model.h"
#include "app/text/model/vocabulary.h"

namespace wherry::text {

class Bpe : public Model {
 public:
  explicit Bpe(const Json& json);

  void encode(std::string_view piece, std::vector<int32_t>& ids, Scratch&) const override;
  int32_t find(std::string_view token) const override { return vocabulary_.find(token); }
  std::optional<std::string_view> token(int32_t id) const override { return vocabulary_.token(id); }
  size_t size() const override { return vocabulary_.size(); }
  int32_t largest_id() const override { return vocabulary_.largest_id(); }

 private:
  void read_merges(const Json& json);
  void split(std::string_view piece, Scratch&) const;
  int32_t id_of_char(std::string_view piece, size_t begin, size_t end, std::string& buffer) const;
  bool add_bytes(std::string_view text, Scratch&) const;
  void merge(Scratch&) const;

  Vocabulary vocabulary_;
  Merges merges_;
  std::vector<int32_t> short_chars_;  // ids of characters of one or two UTF-8 bytes
  std::vector<int32_t> bytes_;  // ids of the tokens <0x00> to <0xFF>; empty without byte fallback
  // Prefix of a word's later characters; suffix of its last character.
  std::string prefix_, suffix_;
  std::optional<int32_t> unknown_;
  bool fuse_unknown_ = false, ignore_merges_ = false;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_BPE_H_
