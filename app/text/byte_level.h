// GPT-2's mapping of bytes to characters: printable Latin-1 maps to itself, the rest to U+0100 and
// up.
#ifndef WHERRY_APP_TEXT_BYTE_LEVEL_H_
#define WHERRY_APP_TEXT_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace wherry::text {

void append_as_chars(std::string_view bytes, std::string& text);
// Appends the bytes of mapped characters. Returns false, and appends nothing, if a character maps
// to no byte.
bool append_as_bytes(std::string_view chars, std::string& bytes);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_BYTE_LEVEL_H_
