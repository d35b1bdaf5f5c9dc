// The bytes of single tokens, for the two families of decoders that work token by token: byte-level
// BPE, and SentencePiece with byte fallback. As runtime_py/text/token_bytes.py.
#ifndef WHERRY_ENGINE_APP_TEXT_TOKEN_BYTES_H_
#define WHERRY_ENGINE_APP_TEXT_TOKEN_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry::text {

class Json;

struct TokenBytes {
  bool byte_level = false;
  std::string pattern, content;  // of byte fallback: what stands for a space, and the space
  int64_t strip = 0;             // how many spaces a whole text loses at its beginning
  // Whether damaged UTF-8 becomes a U+FFFD for each byte, or one for each part of a character.
  bool each_byte() const { return !byte_level; }

  std::string of(std::string_view name) const;
};

// Nothing if the decoder does not work token by token.
std::optional<TokenBytes> token_bytes_of(const Json& decoder);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_TOKEN_BYTES_H_
