#include "app/text/byte_level.h"

#include <array>
#include <cstdint>

#include "app/value/code_points.h"

namespace wherry::text {

using namespace unicode;

namespace {

struct ByteChars {
  ByteChars() {
    bytes.fill(-1);
    char32_t other = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      char32_t code = printable ? byte : other++;
      append_code_point(chars[byte], code);
      bytes[code] = static_cast<int16_t>(byte);
    }
  }
  std::array<std::string, 256> chars;
  std::array<int16_t, 0x200> bytes;  // byte of each character; -1 if it has none
};

const ByteChars& table() {
  static const ByteChars result;
  return result;
}

}  // namespace

void append_as_chars(std::string_view bytes, std::string& text) {
  const auto& chars = table().chars;
  for (char byte : bytes) text += chars[static_cast<unsigned char>(byte)];
}

bool append_as_bytes(std::string_view chars, std::string& bytes) {
  size_t size = bytes.size();
  for (size_t at = 0; at < chars.size();) {
    char32_t code = next_code_point(chars, at);
    int16_t byte = code < 0x200 ? table().bytes[code] : int16_t{-1};
    if (byte < 0) {
      bytes.resize(size);
      return false;
    }
    bytes += static_cast<char>(byte);
  }
  return true;
}

}  // namespace wherry::text
