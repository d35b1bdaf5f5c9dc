// A model's tokenizer: it converts text to token ids and back. JsonTokenizer (json_tokenizer.h) is
// the one of phones, boards and pages; a host that has a library for it brings its own.
#ifndef WHERRY_APP_TEXT_TOKENIZER_H_
#define WHERRY_APP_TEXT_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

namespace text {

// A pair of texts with its special tokens.
struct Pair {
  std::vector<int32_t> ids;
  std::vector<int32_t> segments;  // of each token, as models with segments read them
  std::vector<int32_t> texts;     // text of each token, 0 or 1; -1 for a special token
};

// The exception for a text that certainly has more tokens than a limit.
struct TooManyTokens {
  int64_t at_least;
};

// How a decoder that works token by token makes a text of the tokens' bytes.
struct ByteRules {
  bool each_byte;  // whether each ill-formed byte becomes U+FFFD, or each ill-formed character
  int64_t strip;   // number of leading spaces that encoding adds to a text and decoding removes
};

}  // namespace text

// The interface of a tokenizer. Implementations are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Encodes UTF-8 text; ill-formed parts become U+FFFD. add_special_tokens: whether to add BOS and
  // other special tokens.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const = 0;
  // Encodes an untrusted text. May throw text::TooManyTokens, before the text is encoded to its
  // end, if it has more tokens than `limit`.
  virtual std::vector<int32_t> encode_at_most(std::string_view text, bool add_special_tokens,
                                              int64_t /*limit*/) const {
    return encode(text, add_special_tokens);
  }
  // Encodes two texts with the special tokens of a pair. Throws Error if the tokenizer has none.
  virtual text::Pair encode_pair(std::string_view first, std::string_view second) const = 0;
  // Decodes all ids together; ignores unknown ids.
  virtual std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const = 0;

  virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  // Returns the token's name, e.g. "Ġthe" or "<|im_end|>".
  virtual std::optional<std::string> token_of(int32_t id) const = 0;
  // Returns the number of different tokens, including added ones.
  virtual size_t vocab_size() const = 0;
  virtual int32_t largest_id() const = 0;  // returns -1 if there are no ids; ids may have gaps

  virtual bool is_special(int32_t id) const = 0;  // whether decode can omit the token
  // Returns the bytes of one token, which may be a part of a character; for a special token the
  // bytes of its name; "" for an unknown id.
  virtual std::string piece(int32_t id) const = 0;
  // Returns how the tokens' bytes become a text; nothing if the decoder does not work token by
  // token.
  virtual std::optional<text::ByteRules> byte_rules() const = 0;

  // Returns whether the id is known and not special.
  bool is_text(int32_t id) const { return !is_special(id) && token_of(id).has_value(); }
  // Returns the id of the special token with this name, if it exists.
  std::optional<int32_t> special_id(std::string_view name) const {
    const auto id = id_of(name);
    return id && is_special(*id) ? id : std::nullopt;
  }
  // Returns the number of leading spaces that encoding adds to a text; 0 if it is unknown.
  int64_t leading_spaces() const {
    const auto rules = byte_rules();
    return rules ? rules->strip : 0;
  }
};

}  // namespace wherry

#endif  // WHERRY_APP_TEXT_TOKENIZER_H_
