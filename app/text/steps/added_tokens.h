// Added tokens, such as <|im_end|>, which are matched before normalization and the model.
#ifndef WHERRY_APP_TEXT_STEPS_ADDED_TOKENS_H_
#define WHERRY_APP_TEXT_STEPS_ADDED_TOKENS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "app/text/steps/normalizer.h"
#include "app/text/steps/pieces.h"

namespace wherry::text {

class Json;
class Model;
class Trie;

class AddedTokens {
 public:
  // json: the list of added tokens, or nullptr; normalizer: may be nullptr. Neither needs to
  // outlive the object.
  AddedTokens(const Json* json, const Model& model, const Normalizer* normalizer);
  ~AddedTokens();

  // Splits the normalized text into added tokens and the text between them. Tokens with
  // "normalized": false are matched before normalization, the others after it.
  Pieces split(std::string_view text, const Normalizer* normalizer) const;

  int32_t find(std::string_view content) const;  // returns the token's id; -1 if there is none
  // Returns the name, normalized if the token is.
  std::optional<std::string_view> name(int32_t id) const;
  bool is_special(int32_t id) const;  // whether decode omits the token
  bool is_special_name(std::string_view name) const;
  // Returns the number of added tokens that the model lacks.
  size_t beyond(const Model& model) const;
  int32_t largest_id() const { return largest_id_; }

 private:
  struct Token {
    std::string content, normal;  // the token's name, and the normalized text to match
    bool single_word, left, right, normalized, special;
  };
  struct Match {
    size_t begin, end;
    int32_t id;  // id of the added token; -1 for the text between tokens
  };
  struct Finder {  // finds one of the two kinds of tokens
    std::unique_ptr<const Trie> trie;
    bool firsts[256] = {};
  };
  Token read_token(const Json& json, const Normalizer* normalizer) const;
  void make_finder(Finder& finder, bool normalized) const;
  std::vector<Match> find_all(std::string_view text, const Finder& finder) const;

  std::unordered_map<int32_t, Token> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_set<std::string> special_;
  Finder raw_, normal_;
  int32_t largest_id_ = -1;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_ADDED_TOKENS_H_
