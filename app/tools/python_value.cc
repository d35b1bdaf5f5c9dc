#include "app/tools/python_value.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/tools/json_value.h"
#include "app/value/code_points.h"
#include "app/value/unicode/characters.h"

namespace wherry::app {

namespace {

constexpr int kDeepestLiteral = 64;
constexpr size_t kLongestWord = 1 << 16;

// Returns the closing bracket for an opening one; '\0' for other characters.
char closing(char32_t opening) {
  return opening == '[' ? ']' : opening == '(' ? ')' : opening == '{' ? '}' : '\0';
}

// Whether a character may be part of an unquoted word.
bool bare(char32_t code) {
  return code > 0x7F ||
         std::string_view(",()[]{}=:\n").find(static_cast<char>(code)) == std::string_view::npos;
}

bool hex(char32_t code) {
  return (code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'f');
}

// Reads any value, see python_value(). argument: the value is a keyword argument of a call.
bool value(Scanner& s, const Emit& emit, const std::string& quote, int depth, bool argument);

// Converts a number, a constant or an unquoted string to JSON.
std::string of_word(const std::string& word) {
  static constexpr std::pair<const char*, const char*> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [python, json] : kWords) {
    if (word == python) return json;
  }
  return is_json(word) ? word : python_number(word).value_or(json_string(word));
}

// Reads a string up to the delimiter `quote`, after the opening one.
bool marked(Scanner& s, const Emit& emit, const std::string& quote) {
  emit("\"");
  const auto mark = s.kept([&] { return Marks({quote}); });
  const bool matched =
      s.until(*mark, [&](std::string_view text) { emit(json_escaped(text)); }).has_value();
  if (matched) emit("\"");
  return matched;
}

// Consumes an escape after its backslash; returns its text, or the escape itself if it is unknown.
std::string python_escape(Scanner& s) {
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
  std::string result;
  append_character(result, code);
  return result;
}

// Reads on after a quote; returns whether the quote belongs to the content of its string, because
// models do not always escape quotes: command='sed -n '1,9p' a.py'. A quote that ends a string is
// followed by a comma, a colon or a closing bracket.
bool goes_on(Scanner& s, bool argument) {
  const char32_t code = s.space();
  if (code == kNoChar) return false;
  if (!argument || (code != ',' && code != ')')) {
    return code > 0x7F ||
           std::string_view(",)]}:").find(static_cast<char>(code)) == std::string_view::npos;
  }
  ++s.at;
  if (code == ')') {
    const char32_t after = s.next();
    return after == ')' || after == '"' || after == '\'';
  }
  const char32_t after = s.space();
  const std::string word = s.match(begins_python_name, of_python_name);
  if (after == kNoChar || after == ')') return false;
  if (word.empty()) return true;
  const char32_t behind = s.space();
  return behind != kNoChar && behind != '=';
}

// Reads a string after its opening quote.
bool python_string(Scanner& s, const Emit& emit, char quote, bool argument) {
  emit("\"");
  const std::string special = {quote, '\\'};
  const Emit escaped = [&](std::string_view text) { emit(json_escaped(text)); };
  for (Rounds rounds(s); rounds.next();) {
    const char match = s.until_any(special, escaped);
    if (match == '\0') return false;
    if (match == '\\') {
      escaped(python_escape(s));
    } else if (s.look([&] { return goes_on(s, argument); })) {
      escaped(std::string(1, quote));
    } else {
      break;
    }
  }
  emit("\"");
  return true;
}

// Reads a dictionary's key, or an item of a set; nothing if the text ends within it.
std::optional<std::string> key(Scanner& s, const std::string& quote) {
  const auto result = s.kept_text();
  if (!value(s, s.to(result), quote, kDeepestLiteral, false)) return std::nullopt;
  return *result;
}

// Reads a list, tuple, set or dictionary after its opening bracket; returns whether it is complete.
bool items(Scanner& s, const Emit& emit, const std::string& quote, int depth, char closed) {
  struct State {
    bool keyed;  // a dictionary, until the first item proves a set
    bool first = true;
  } state{closed == '}'};
  auto& [keyed, first] = state;
  emit(keyed ? "" : "[");
  for (Rounds rounds(s); rounds.next(state);) {
    char32_t code = s.space();
    if (code == kNoChar) return false;
    if (code == static_cast<char32_t>(closed)) {
      ++s.at;
      break;
    }
    if (code == ',' && !first) {
      ++s.at;
      continue;
    }
    const size_t before = s.at;
    emit(first ? "" : ", ");
    if (keyed) {
      const std::optional<std::string> name = key(s, quote);
      code = s.space();
      if (first && name && s.at > before && (code == ',' || code == '}')) {
        keyed = first = false;
        emit("[" + *name);
        continue;
      }
      emit(first ? "{" : "");
      if (!name) return false;
      emit((name->substr(0, 1) == "\"" ? *name : json_string(*name)) + ": ");
      if (code != ':') return false;
      ++s.at;
    }
    first = false;
    if (!value(s, emit, quote, depth + 1, false)) return false;
    if (s.at == before) ++s.at;  // skips a character that cannot begin a value
  }
  emit(keyed && first ? "{}" : keyed ? "}" : "]");
  return true;
}

bool value(Scanner& s, const Emit& emit, const std::string& quote, int depth, bool argument) {
  const char32_t code = s.space();
  if (!quote.empty() && s.accept(quote)) return marked(s, emit, quote);
  if (code == '\'' || code == '"') {
    ++s.at;
    return python_string(s, emit, static_cast<char>(code), argument);
  }
  if (closing(code) != '\0' && depth < kDeepestLiteral) {
    ++s.at;
    return items(s, emit, quote, depth, closing(code));
  }
  const std::string word = s.match(bare, kLongestWord);
  const size_t start = unicode::skip_left(word), end = unicode::skip_right(word);
  emit(of_word(start < end ? word.substr(start, end - start) : ""));
  return s.next() != kNoChar;
}

}  // namespace

bool begins_python_name(char32_t code) {
  return code == '_' || ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
}

// The characters are those of \w in Python's regular expressions.
bool of_python_name(char32_t code) {
  return code == '_' || unicode::is_alpha(code) || unicode::is_decimal(code) ||
         unicode::is_digit(code) || unicode::is_numeric(code);
}

bool python_value(Scanner& s, const Emit& emit, const std::string& quote) {
  return value(s, emit, quote, 0, false);
}

bool python_argument(Scanner& s, const Emit& emit) { return value(s, emit, "", 0, true); }

std::optional<std::string> complete_python_value(std::string_view text) {
  if (text.empty() || closing(static_cast<unsigned char>(text[0])) == '\0') return std::nullopt;
  Scanner s;
  s.feed(text);
  s.end();
  std::string result;
  const bool matched = python_value(s, [&](std::string_view piece) { result += piece; }, "");
  if (!matched || s.at != text.size() || !is_json(result)) return std::nullopt;
  return result;
}

}  // namespace wherry::app
