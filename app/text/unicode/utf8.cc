#include "app/text/unicode/utf8.h"

namespace wherry::text {

size_t count_chars(std::string_view text) {
  size_t n = 0;
  for (char byte : text) n += !is_continuation(byte);
  return n;
}

Utf8Part part_at(std::string_view text, size_t at) {
  auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {1, true, false};
  if (first < 0xC2 || first > 0xF4) return {1, false, false};
  // The range of the second byte excludes overlong forms, surrogates and values beyond U+10FFFF.
  unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  size_t need = length_of(first), have = 1;
  for (; have < need; ++have, low = 0x80, high = 0xBF) {
    if (at + have == text.size()) return {have, false, true};
    auto byte = static_cast<unsigned char>(text[at + have]);
    if (byte < low || byte > high) return {have, false, false};
  }
  return {need, true, false};
}

bool is_well_formed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    Utf8Part part = part_at(text, at);
    if (!part.whole) return false;
    at += part.length;
  }
  return true;
}

std::string repaired(std::string_view text) {
  Utf8Stream stream(false);
  std::string made = stream.push(text);
  return made += stream.flush();
}

std::string Utf8Stream::decode(std::string_view bytes, bool final) {
  std::string joined = std::move(held_);
  joined += bytes;
  held_.clear();
  std::string out;
  out.reserve(joined.size());
  for (size_t at = 0; at < joined.size();) {
    Utf8Part part = part_at(joined, at);
    // Half a surrogate pair is already ill-formed after two bytes, but Python's decoder waits for
    // the third byte, and both decoders have to emit the same pieces.
    bool surrogate =
        joined.size() - at == 2 && joined[at] == '\xED' && is_continuation(joined[at + 1]);
    if ((part.cut || surrogate) && !final) {
      held_ = joined.substr(at);
      break;
    }
    if (part.whole) {
      out.append(joined, at, part.length);
    } else {
      for (size_t i = 0; i < (each_byte_ ? part.length : 1); ++i) out += kReplacement;
    }
    at += part.length;
  }
  return out;
}

}  // namespace wherry::text
