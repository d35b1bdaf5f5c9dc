#include "app/value/code_points.h"

namespace wherry::unicode {

namespace {

bool stripped(char32_t code, const std::string_view* chars) {
  if (chars == nullptr) return is_space(code);
  for (size_t at = 0; at < chars->size();) {
    if (next_code_point(*chars, at) == code) return true;
  }
  return false;
}

}  // namespace

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (char byte : text) count += !is_continuation(byte);
  return count;
}

void append_code_point(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr unsigned char kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

size_t byte_of(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (is_continuation(text[at])) continue;
    if (index == 0) return at;
    --index;
  }
  return at;
}

bool is_space(char32_t code) {
  return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

size_t skip_left(std::string_view text, const std::string_view* chars) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    if (!stripped(next_code_point(text, end), chars)) break;
    at = end;
  }
  return at;
}

size_t skip_right(std::string_view text, const std::string_view* chars) {
  size_t end = text.size();
  while (end > 0) {
    const size_t start = before(text, end);
    size_t at = start;
    if (!stripped(next_code_point(text, at), chars)) break;
    end = start;
  }
  return end;
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
    if (!part.complete) return false;
    at += part.length;
  }
  return true;
}

std::string well_formed(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Part part = part_at(text, at);
    repaired += part.complete ? text.substr(at, part.length) : kReplacement;
    at += part.length;
  }
  return repaired;
}

std::string Utf8Stream::decode(std::string_view bytes, bool final) {
  std::string joined = std::move(kept_);
  joined += bytes;
  kept_.clear();
  std::string out;
  out.reserve(joined.size());
  for (size_t at = 0; at < joined.size();) {
    Utf8Part part = part_at(joined, at);
    // Half a surrogate pair is already ill-formed after two bytes, but Python's decoder waits for
    // the third byte, and both decoders have to emit the same pieces.
    bool surrogate =
        joined.size() - at == 2 && joined[at] == '\xED' && is_continuation(joined[at + 1]);
    if ((part.cut || surrogate) && !final) {
      kept_ = joined.substr(at);
      break;
    }
    if (part.complete) {
      out.append(joined, at, part.length);
    } else {
      for (size_t i = 0; i < (each_byte_ ? part.length : 1); ++i) out += kReplacement;
    }
    at += part.length;
  }
  return out;
}

}  // namespace wherry::unicode
