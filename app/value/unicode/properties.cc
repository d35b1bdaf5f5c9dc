#include "app/value/unicode/properties.h"

#include <algorithm>
#include <iterator>

#include "app/value/code_points.h"
#include "app/value/unicode/mappings.h"
#include "app/value/unicode/packed.h"
#include "app/value/unicode/tables.h"

namespace wherry::unicode {

namespace {

struct CategoryName {
  const char *name, *long_name;
};
// The categories in the order of the table's numbers.
constexpr CategoryName kCategoryNames[] = {
    {"Cn", "Unassigned"},
    {"Cc", "Control"},
    {"Cf", "Format"},
    {"Co", "Private_Use"},
    {"Cs", "Surrogate"},
    {"Ll", "Lowercase_Letter"},
    {"Lm", "Modifier_Letter"},
    {"Lo", "Other_Letter"},
    {"Lt", "Titlecase_Letter"},
    {"Lu", "Uppercase_Letter"},
    {"Mc", "Spacing_Mark"},
    {"Me", "Enclosing_Mark"},
    {"Mn", "Nonspacing_Mark"},
    {"Nd", "Decimal_Number"},
    {"Nl", "Letter_Number"},
    {"No", "Other_Number"},
    {"Pc", "Connector_Punctuation"},
    {"Pd", "Dash_Punctuation"},
    {"Pe", "Close_Punctuation"},
    {"Pf", "Final_Punctuation"},
    {"Pi", "Initial_Punctuation"},
    {"Po", "Other_Punctuation"},
    {"Ps", "Open_Punctuation"},
    {"Sc", "Currency_Symbol"},
    {"Sk", "Modifier_Symbol"},
    {"Sm", "Math_Symbol"},
    {"So", "Other_Symbol"},
    {"Zl", "Line_Separator"},
    {"Zp", "Paragraph_Separator"},
    {"Zs", "Space_Separator"},
};
constexpr CategoryName kMajorNames[] = {
    {"C", "Other"},       {"L", "Letter"}, {"M", "Mark"},      {"N", "Number"},
    {"P", "Punctuation"}, {"S", "Symbol"}, {"Z", "Separator"},
};

// Compares property names without case, spaces, hyphens and underscores.
bool same_name(std::string_view a, std::string_view b) {
  auto plain = [](std::string_view text) {
    std::string result;
    for (char c : text) {
      if (c == '_' || c == '-' || c == ' ') continue;
      result += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return result;
  };
  return plain(a) == plain(b);
}

// Returns the characters of some categories, whose numbers are the bits of `chosen`.
CodePoints of_categories(uint32_t chosen) {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  PackedNumbers runs(tables::kCategories);
  for (char32_t at = 0; !runs.done();) {
    const char32_t end = at + runs.next();
    if (chosen >> runs.next() & 1) ranges.emplace_back(at, end);
    at = end;
  }
  return CodePoints(std::move(ranges));
}

}  // namespace

CodePoints packed_set(const char* table) {
  PackedNumbers runs(table);
  const CodePoints members = of_categories(runs.next());
  std::vector<std::pair<char32_t, char32_t>> ranges;
  bool except = false;
  for (char32_t at = 0; !runs.done(); except = !except) {
    const char32_t end = at + runs.next();
    if (except) ranges.emplace_back(at, end);
    at = end;
  }
  const CodePoints exceptions(std::move(ranges));
  return (members & ~exceptions) | (exceptions & ~members);
}

std::optional<CodePoints> category(std::string_view name) {
  const auto is_named = [&](const CategoryName& each) {
    return same_name(name, each.name) || same_name(name, each.long_name);
  };
  uint32_t chosen = 0;
  for (size_t i = 0; i < std::size(kCategoryNames); ++i) {
    const bool in_major =
        std::any_of(std::begin(kMajorNames), std::end(kMajorNames), [&](const CategoryName& major) {
          return major.name[0] == kCategoryNames[i].name[0] && is_named(major);
        });
    if (in_major || is_named(kCategoryNames[i])) chosen |= 1u << i;
  }
  return chosen == 0 ? std::nullopt : std::optional(of_categories(chosen));
}

CodePoints pattern_words() { return packed_set(tables::kPatternWords); }
CodePoints spaces() { return packed_set(tables::kSpaces); }

const CharSet& is_white_space() {
  static const CharSet set(spaces());
  return set;
}
const CharSet& is_word() {
  static const CharSet set(packed_set(tables::kWords));
  return set;
}
const CharSet& is_punctuation() {
  static const CharSet set(packed_set(tables::kPunctuation));
  return set;
}
const CharSet& is_number() {
  static const CharSet set(packed_set(tables::kNumeric));
  return set;
}
const CharSet& is_mark() {
  static const CharSet set(packed_set(tables::kMarks));
  return set;
}
const CharSet& is_nonspacing() {
  static const CharSet set(packed_set(tables::kNonspacing));
  return set;
}
const CharSet& is_control() {
  static const CharSet set(packed_set(tables::kControl));
  return set;
}

RunTable::RunTable(const char* table) {
  PackedNumbers runs(table);
  for (uint32_t at = 0; !runs.done();) {
    ends_.push_back(at += runs.next());
    values_.push_back(static_cast<uint8_t>(runs.next()));
  }
}

uint8_t RunTable::operator[](char32_t code) const {
  auto it = std::upper_bound(ends_.begin(), ends_.end(), static_cast<uint32_t>(code));
  return values_[static_cast<size_t>(it - ends_.begin())];
}

std::string lowered(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      out += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
      ++at;
      continue;
    }
    size_t begin = at;
    char32_t code = next_code_point(text, at);
    if (const std::u32string* to = lower_cases().find(code)) {
      for (char32_t c : *to) append_code_point(out, c);
    } else {
      out.append(text, begin, at - begin);
    }
  }
  return out;
}

}  // namespace wherry::unicode
