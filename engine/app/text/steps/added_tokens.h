// Tokens that are found in a text before anything else: <|im_end|> and the like.
#ifndef WHERRY_ENGINE_APP_TEXT_STEPS_ADDED_TOKENS_H_
#define WHERRY_ENGINE_APP_TEXT_STEPS_ADDED_TOKENS_H_

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
  // `json`: the list, or nullptr; `normalizer`: or nullptr. Both may go afterwards.
  AddedTokens(const Json* json, const Model& model, const Normalizer* normalizer);
  ~AddedTokens();

  // The text, normalized, in pieces: added tokens and what lies between. Tokens that are not to be
  // normalized are found before that, the others after it.
  Pieces split(std::string_view text, const Normalizer* normalizer) const;

  int32_t find(std::string_view content) const;            // -1 if there is none
  std::optional<std::string_view> name(int32_t id) const;  // normalized, if it is to be
  bool is_special(int32_t id) const;                       // skipped in texts
  bool is_special_name(std::string_view name) const;
  size_t beyond(const Model& model) const;  // how many the model does not have
  int32_t largest_id() const { return largest_id_; }

 private:
  struct Token {
    std::string content, normal;  // `normal`: what is looked for
    bool single_word, left, right, normalized, special;
  };
  struct Found {
    size_t begin, end;
    int32_t id;  // -1: what lies between
  };
  struct Finder {  // of the one kind or the other
    std::unique_ptr<const Trie> trie;
    bool firsts[256] = {};
  };
  Token read_token(const Json& json, const Normalizer* normalizer) const;
  void make_finder(Finder& finder, bool normalized) const;
  std::vector<Found> find_all(std::string_view text, const Finder& finder) const;

  std::unordered_map<int32_t, Token> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_set<std::string> special_;
  Finder raw_, normal_;
  int32_t largest_id_ = -1;
};

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_STEPS_ADDED_TOKENS_H_
