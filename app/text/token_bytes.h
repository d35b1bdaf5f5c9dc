// Returns the bytes of single tokens, for the two kinds of decoders that work token by token:
// byte-level BPE, and SentencePiece with byte fallback.
#ifndef WHERRY_APP_TEXT_TOKEN_BYTES_H_
#define WHERRY_APP_TEXT_TOKEN_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry::text {

class Json;

struct TokenBytes {
  bool byte_level = false;
  std::string pattern, content;  // byte fallback: the text that stands for a space, and the space
  int64_t strip = 0;             // number of leading spaces that decode removes
  // Whether each ill-formed byte becomes a U+FFFD, or else each ill-formed part of a character.
  bool each_byte() const { return !byte_level; }

  std::string of(std::string_view name) const;
};

// Returns how the decoder's tokens become bytes; nothing if the decoder does not work token by
// token.
std::optional<TokenBytes> token_bytes_of(const Json& decoder);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_TOKEN_BYTES_H_
