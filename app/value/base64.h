// Encodes and decodes base64 (RFC 4648, section 4).
#ifndef WHERRY_APP_VALUE_BASE64_H_
#define WHERRY_APP_VALUE_BASE64_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace wherry {

std::string encode_base64(std::string_view bytes);

// Sets the bytes of a text, whose padding may be left out; spaces and ends of lines are skipped, as
// encoders for mail write them. Returns the index of the character that is wrong, which is the
// text's size if it ends in the middle of a byte; npos: the text is base64.
size_t decode_base64(std::string_view text, std::string& bytes);

}  // namespace wherry

#endif  // WHERRY_APP_VALUE_BASE64_H_
