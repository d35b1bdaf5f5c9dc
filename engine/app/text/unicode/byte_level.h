// GPT-2's characters for bytes: printable Latin-1 stands for itself, the rest from U+0100 on.
#ifndef WHERRY_ENGINE_APP_TEXT_UNICODE_BYTE_LEVEL_H_
#define WHERRY_ENGINE_APP_TEXT_UNICODE_BYTE_LEVEL_H_

#include <string>
#include <string_view>

namespace wherry::text {

void append_as_chars(std::string_view bytes, std::string& text);
// False, and nothing added, if a character stands for no byte.
bool append_as_bytes(std::string_view chars, std::string& bytes);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_UNICODE_BYTE_LEVEL_H_
