#include "app/value/unicode/packed.h"

namespace wherry::unicode {

namespace {

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

bool decode_base64(std::string_view text, std::string& bytes) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  bytes.clear();
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t pending = 0;
  int bits = 0;
  for (char c : text) {
    int value = sextet(c);
    if (value < 0) return false;
    pending = pending << 6 | static_cast<uint32_t>(value);
    if ((bits += 6) >= 8) bytes += static_cast<char>(pending >> (bits -= 8) & 0xFF);
  }
  return true;
}

PackedNumbers::PackedNumbers(const char* table) { decode_base64(table, bytes_); }

uint32_t PackedNumbers::next() {
  uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= (byte & 0x7Fu) << shift;
    if (byte < 0x80) return value;
  }
}

int32_t PackedNumbers::next_signed() {
  uint32_t value = next();
  return static_cast<int32_t>(value >> 1) ^ -static_cast<int32_t>(value & 1);
}

}  // namespace wherry::unicode
