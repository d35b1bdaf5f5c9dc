#include "app/tools/python_value.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/template/code_points.h"
#include "app/tools/json_value.h"

namespace wherry::app {

namespace {

constexpr int kDeepestLiteral = 64;
constexpr size_t kLongestWord = 1 << 16;

char closing(char32_t opening) {
  return opening == '[' ? ']' : opening == '(' ? ')' : opening == '{' ? '}' : '\0';
}

bool bare(char32_t code) {
  return code > 0x7F ||
         std::string_view(",()[]{}=:\n").find(static_cast<char>(code)) == std::string_view::npos;
}

bool hex(char32_t code) {
  return (code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'f');
}

// A number, a constant, or a string that somebody forgot to quote.
std::string of_word(const std::string& word) {
  static constexpr std::pair<const char*, const char*> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [python, json] : kWords) {
    if (word == python) return json;
  }
  return is_json(word) ? word : python_number(word).value_or(json_string(word));
}

bool marked(Scanner& s, const Emit& emit, const std::string& quote) {
  emit("\"");
  const bool found =
      s.until({quote}, [&](std::string_view text) { emit(json_escaped(text)); }).has_value();
  if (found) emit("\"");
  return found;
}

// What a backslash and what follows it stand for; both, if nothing.
std::string python_escape(Scanner& s) {
  s.next();
  const std::string letter = s.take(1);
  const size_t size = letter == "x" ? 2 : letter == "u" ? 4 : letter == "U" ? 8 : 0;
  if (size == 0) {
    static constexpr std::pair<char, const char*> kKnown[] = {{'n', "\n"}, {'t', "\t"}, {'r', "\r"},
                                                              {'b', "\b"}, {'f', "\f"}, {'\n', ""}};
    if (letter == "0") return std::string(1, '\0');
    for (const auto& [known, meant] : kKnown) {
      if (letter.size() == 1 && letter[0] == known) return meant;
    }
    const bool itself = letter.empty() || letter == "\\" || letter == "'" || letter == "\"";
    return itself ? letter : "\\" + letter;
  }
  const std::string digits = s.match(hex, hex, kMostMatched, size);
  const auto code = static_cast<char32_t>(std::strtoul(digits.c_str(), nullptr, 16));
  if (digits.empty() || code > 0x10FFFF) return "\\" + letter + digits;
  std::string made;
  append_character(made, code);
  return made;
}

bool python_string(Scanner& s, const Emit& emit, char quote) {
  ++s.at;
  emit("\"");
  const char special[] = {quote, '\\', '\0'};
  for (char32_t code = s.next(); code != kNoChar; code = s.next()) {
    if (code == static_cast<char32_t>(quote)) {
      ++s.at;
      emit("\"");
      return true;
    }
    if (code == '\\') {
      ++s.at;
      emit(json_escaped(python_escape(s)));
      continue;
    }
    const std::string_view left = s.rest();
    const size_t size = std::min(left.find_first_of(special), left.size());
    s.at += size;
    emit(json_escaped(left.substr(0, size)));
  }
  return false;
}

bool key(Scanner& s, const Emit& emit, const std::string& quote) {
  std::string made;
  const Emit keep = [&](std::string_view text) { made += text; };
  if (!python_value(s, keep, quote, kDeepestLiteral)) return false;
  emit(made.substr(0, 1) == "\"" ? made : json_string(made));
  emit(": ");
  const bool right = s.space() == ':';
  s.at += right;
  return right;
}

// A list, tuple or dictionary.
bool items(Scanner& s, const Emit& emit, const std::string& quote, int depth) {
  const char opened = s.text[s.at++];
  const bool dict = opened == '{';
  emit(dict ? "{" : "[");
  for (bool first = true;;) {
    const char32_t code = s.space();
    if (code == kNoChar) return false;
    if (code == static_cast<char32_t>(closing(opened))) {
      ++s.at;
      emit(dict ? "}" : "]");
      return true;
    }
    if (code == ',' && !first) {
      ++s.at;
      continue;
    }
    const size_t before = s.at;
    if (!std::exchange(first, false)) emit(", ");
    if (dict && !key(s, emit, quote)) return false;
    if (!python_value(s, emit, quote, depth + 1)) return false;
    if (s.at == before) ++s.at;  // a character that nothing begins with
  }
}

}  // namespace

bool python_value(Scanner& s, const Emit& emit, const std::string& quote, int depth) {
  const char32_t code = s.space();
  if (!quote.empty() && s.accept(quote)) return marked(s, emit, quote);
  if (code == '\'' || code == '"') return python_string(s, emit, static_cast<char>(code));
  if (closing(code) != '\0' && depth < kDeepestLiteral) return items(s, emit, quote, depth);
  const std::string word = s.match(bare, kLongestWord);
  const size_t start = jinja::skip_left(word), end = jinja::skip_right(word);
  emit(of_word(start < end ? word.substr(start, end - start) : ""));
  return s.next() != kNoChar;
}

std::optional<std::string> python_whole(std::string_view text) {
  if (text.empty() || closing(static_cast<unsigned char>(text[0])) == '\0') return std::nullopt;
  Scanner s;
  s.feed(text);
  s.ended = true;
  std::string made;
  const bool found = python_value(s, [&](std::string_view piece) { made += piece; });
  if (!found || s.at != text.size() || !is_json(made)) return std::nullopt;
  return made;
}

}  // namespace wherry::app
