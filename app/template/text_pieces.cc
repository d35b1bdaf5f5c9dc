#include "app/template/text_pieces.h"

#include <algorithm>

#include "app/template/operators.h"
#include "app/value/code_points.h"
#include "app/value/unicode/characters.h"

namespace wherry::jinja {

namespace {

// Whether the text has cased characters and all of them are of the `right` case.
bool cased(std::string_view text, bool (*right)(char32_t), bool (*wrong)(char32_t)) {
  bool matched = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    if (wrong(code) || is_title(code)) return false;
    matched = matched || right(code);
  }
  return matched;
}

}  // namespace

bool alphanumeric(char32_t code) { return is_alpha(code) || is_numeric(code) || is_digit(code); }

bool all_upper(std::string_view text) { return cased(text, is_upper, is_lower); }
bool all_lower(std::string_view text) { return cased(text, is_lower, is_upper); }

std::string without_ends(std::string_view text, const Value* chars, bool left, bool right) {
  std::string_view set;
  const bool given = chars != nullptr && !chars->is_none();
  if (given) {
    use(*chars);
    if (!chars->is_string()) fail("strip takes a text");
    set = chars->text();
  }
  if (left) text.remove_prefix(skip_left(text, given ? &set : nullptr));
  if (right) text = text.substr(0, skip_right(text, given ? &set : nullptr));
  return std::string(text);
}

std::string replaced(Budget& budget, const std::string& text, const std::string& old,
                     const std::string& with, int64_t most) {
  std::vector<size_t> matches;
  const size_t limit = most < 0 ? SIZE_MAX : static_cast<size_t>(most);
  if (old.empty()) {
    for (size_t at = 0; at <= text.size() && matches.size() < limit;) {
      matches.push_back(at);
      if (at == text.size()) break;
      next_code_point(text, at);
    }
  } else {
    for (size_t at = 0; matches.size() < limit && (at = text.find(old, at)) != text.npos;
         at += old.size()) {
      matches.push_back(at);
    }
  }
  if (with.size() > old.size()) {
    budget.check((text.size() + matches.size() * (with.size() - old.size())) / 4);
    budget.check(count_code_points(text) +
                 matches.size() * (count_code_points(with) -
                                   std::min(count_code_points(with), count_code_points(old))));
  }
  std::string result;
  size_t from = 0;
  for (size_t at : matches) {
    result.append(text, from, at - from);
    result += with;
    from = at + old.size();
  }
  return result.append(text, from, text.npos);
}

std::string centered(const std::string& text, int64_t width, const std::string& fill) {
  const int64_t room = width - static_cast<int64_t>(count_code_points(text));
  if (room <= 0) return text;
  const int64_t left = room / 2 + (room & width & 1);
  std::string result;
  for (int64_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (int64_t i = left; i < room; ++i) result += fill;
  return result;
}

std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends) {
  const auto ends_line = [](char32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  std::vector<std::string_view> texts;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t code = next_code_point(text, at);
    if (!ends_line(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    texts.push_back(text.substr(from, (keep_ends ? at : end) - from));
    from = at;
  }
  if (from < text.size()) texts.push_back(text.substr(from));
  return texts;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> texts;
  size_t from = 0;
  bool within = false;
  for (size_t at = 0; at <= text.size();) {
    const size_t start = at;
    const char32_t code = at < text.size() ? next_code_point(text, at) : U' ';
    const bool word = code == '_' || alphanumeric(code);
    if (word && !within) from = start;
    if (!word && within) texts.push_back(text.substr(from, start - from));
    within = word;
    if (start == text.size()) break;
  }
  return texts;
}

}  // namespace wherry::jinja
