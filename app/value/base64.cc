#include "app/value/base64.h"

#include <algorithm>
#include <cstdint>

namespace wherry {

namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < n ? static_cast<uint8_t>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      result += j <= n ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return result;
}

size_t decode_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t pending = 0;
  int bits = 0;
  size_t characters = 0, padding = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_blank(text[i])) continue;
    if (text[i] == '=' && padding < 2) {
      ++padding;
      continue;
    }
    const int value = sextet(text[i]);
    if (value < 0 || padding > 0) return i;
    ++characters;
    pending = pending << 6 | static_cast<uint32_t>(value);
    if ((bits += 6) >= 8) bytes += static_cast<char>(pending >> (bits -= 8) & 0xFF);
  }
  const bool complete = characters % 4 != 1 && (padding == 0 || (characters + padding) % 4 == 0);
  return complete ? text.npos : text.size();
}

}  // namespace wherry
