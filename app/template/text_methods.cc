#include "app/template/text_methods.h"

#include <algorithm>

#include "app/template/operators.h"
#include "app/template/text_pieces.h"
#include "app/value/code_points.h"
#include "app/value/unicode/characters.h"
#include "app/value/unicode/properties.h"

namespace wherry::jinja {

namespace {

std::string_view text_of(const Value& value) {
  use(value);
  if (!value.is_string()) fail("a function takes a text");
  return value.text();
}

Value list_of(const std::vector<std::string_view>& pieces) {
  Values values;
  for (std::string_view piece : pieces) values.emplace_back(piece);
  return make_list(std::move(values));
}

template <bool (*holds)(char32_t)>
bool every(std::string_view text) {
  if (text.empty()) return false;
  for (size_t at = 0; at < text.size();) {
    if (!holds(next_code_point(text, at))) return false;
  }
  return true;
}

bool is_titled(std::string_view text) {
  bool matched = false, within = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    const bool begins = is_upper(code) || is_title(code);
    if (begins ? within : is_lower(code) && !within) return false;
    within = begins || is_lower(code);
    matched = matched || begins || within;
  }
  return matched;
}

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  for (size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const char32_t code = next_code_point(text, at);
    const bool goes_on = is_decimal(code) || is_mark().contains(code);
    if (code != '_' && !is_alpha(code) && (first || !goes_on)) return false;
  }
  return true;
}

template <bool (*holds)(std::string_view)>
Value asks(Budget&, const Value& owner, const Arguments& given) {
  const Bound none(given, {});
  return Value(holds(owner.text()));
}

template <std::string (*change)(std::string_view)>
Value changes(Budget&, const Value& owner, const Arguments& given) {
  const Bound none(given, {});
  return Value(change(owner.text()));
}

template <bool left, bool right>
Value strip(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"chars="});
  return Value(without_ends(owner.text(), arguments[0], left, right));
}

std::vector<std::string_view> by_space(std::string_view text, int64_t most) {
  std::vector<std::string_view> texts;
  while (true) {
    text.remove_prefix(skip_left(text));
    if (text.empty()) return texts;
    if (most-- == 0) {
      texts.push_back(text.substr(0, skip_right(text)));
      return texts;
    }
    size_t end = 0;
    for (size_t at = 0; at < text.size(); end = at) {
      if (is_space(next_code_point(text, at))) break;
    }
    texts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> by_space_from_right(std::string_view text, int64_t most) {
  std::vector<std::string_view> texts;
  while (true) {
    text = text.substr(0, skip_right(text));
    if (text.empty()) break;
    if (most-- == 0) {
      texts.push_back(text.substr(skip_left(text)));
      break;
    }
    size_t start = 0;
    for (size_t at = 0; at < text.size();) {
      if (is_space(next_code_point(text, at))) start = at;
    }
    texts.push_back(text.substr(start));
    text = text.substr(0, start);
  }
  std::reverse(texts.begin(), texts.end());
  return texts;
}

template <bool from_right>
Value split(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"sep=", "maxsplit="});
  const int64_t maxsplit = arguments[1] ? to_integer(*arguments[1]) : -1;
  const int64_t most = maxsplit < 0 ? INT64_MAX : maxsplit;
  std::string_view text = owner.text();
  if (arguments[0] == nullptr || arguments[0]->is_none()) {
    return list_of(from_right ? by_space_from_right(text, most) : by_space(text, most));
  }
  const std::string_view sign = text_of(*arguments[0]);
  if (sign.empty()) fail("empty separator");
  std::vector<std::string_view> texts;
  for (int64_t i = 0; i < most; ++i) {
    const size_t at = from_right ? text.rfind(sign) : text.find(sign);
    if (at == text.npos) break;
    texts.push_back(from_right ? text.substr(at + sign.size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + sign.size());
  }
  texts.push_back(text);
  if (from_right) std::reverse(texts.begin(), texts.end());
  return list_of(texts);
}

Value splitlines(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"keepends="});
  return list_of(lines_of(owner.text(), arguments[0] && truth(*arguments[0])));
}

template <bool from_right>
Value partition(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"sep"});
  const std::string_view text = owner.text(), sign = text_of(*arguments[0]);
  if (sign.empty()) fail("empty separator");
  const size_t at = from_right ? text.rfind(sign) : text.find(sign);
  if (at == text.npos) {
    return from_right ? make_tuple({"", "", owner}) : make_tuple({owner, "", ""});
  }
  return make_tuple({text.substr(0, at), sign, text.substr(at + sign.size())});
}

// Returns the slice from `start` to `end`; `begin` gets its offset in characters.
std::string_view part(const Value& owner, const Value* start, const Value* end, int64_t& begin) {
  const auto length = static_cast<int64_t>(owner.chars());
  const auto bound = [&](const Value* value, int64_t otherwise) {
    if (value == nullptr || value->is_none()) return otherwise;
    const int64_t at = to_integer(*value);
    return std::clamp(at < 0 ? at + length : at, int64_t{0}, length);
  };
  begin = bound(start, 0);
  const int64_t stop = bound(end, length);
  const std::string_view text = owner.text();
  if (begin > stop) return std::string_view();
  const size_t from = byte_of(text, static_cast<size_t>(begin));
  return text.substr(from, byte_of(text, static_cast<size_t>(stop)) - from);
}

template <bool from_right, bool must>
Value find(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"sub", "start=", "end="});
  const std::string_view sign = text_of(*arguments[0]);
  int64_t begin = 0;
  const std::string_view text = part(owner, arguments[1], arguments[2], begin);
  const bool outside = text.data() == nullptr;
  const size_t at = outside ? text.npos : from_right ? text.rfind(sign) : text.find(sign);
  if (at != text.npos)
    return Value(begin + static_cast<int64_t>(count_code_points(text.substr(0, at))));
  if (must) fail("the text is not there");
  return Value(-1);
}

Value count(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"sub", "start=", "end="});
  const std::string_view sign = text_of(*arguments[0]);
  int64_t begin = 0, matches = 0;
  const std::string_view text = part(owner, arguments[1], arguments[2], begin);
  if (text.data() == nullptr) return Value(0);
  if (sign.empty()) return Value(static_cast<int64_t>(count_code_points(text)) + 1);
  for (size_t at = 0; (at = text.find(sign, at)) != text.npos; at += sign.size()) ++matches;
  return Value(matches);
}

template <bool at_end>
Value borders(Budget&, const Value& owner, const Arguments& given) {
  const char* name = at_end ? "endswith" : "startswith";
  const Bound arguments(given, {"prefix", "start=", "end="});
  int64_t begin = 0;
  const std::string_view text = part(owner, arguments[1], arguments[2], begin);
  if (text.data() == nullptr) return Value(false);
  const auto fits = [&](const Value& sign) {
    if (!sign.is_string()) {
      use(sign);
      fail(std::string(name) + " takes a text or texts");
    }
    const std::string_view affix = sign.text();
    if (affix.size() > text.size()) return false;
    return text.substr(at_end ? text.size() - affix.size() : 0, affix.size()) == affix;
  };
  if (!arguments[0]->is(Kind::kTuple)) return Value(fits(*arguments[0]));
  const Values& signs = arguments[0]->items();
  return Value(std::any_of(signs.begin(), signs.end(), fits));
}

template <bool at_end>
Value removes(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"prefix"});
  const std::string_view text = owner.text();
  const std::string_view sign = text_of(*arguments[0]);
  if (sign.size() > text.size()) return owner;
  const size_t at = at_end ? text.size() - sign.size() : 0;
  if (text.substr(at, sign.size()) != sign) return owner;
  return Value(at_end ? text.substr(0, at) : text.substr(sign.size()));
}

Value replace(Budget& budget, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"old", "new", "count="});
  const std::string old(text_of(*arguments[0]));
  const std::string with(text_of(*arguments[1]));
  return Value(
      replaced(budget, owner.text(), old, with, arguments[2] ? to_integer(*arguments[2]) : -1));
}

Value join(Budget& budget, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"iterable"});
  use(*arguments[0]);
  const Values pieces = budget.listed(*arguments[0]);
  size_t size = owner.chars() * pieces.size(), i = 0;
  for (const Value& piece : pieces) size += size_of(piece);
  budget.check(size);
  std::string result;
  for (const Value& piece : pieces) {
    if (!piece.is_string()) fail("join takes texts");
    if (i++ > 0) result += owner.text();
    result += piece.text();
  }
  return Value(std::move(result));
}

template <char where>
Value justify(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"width", "fillchar="});
  check_width(arguments[0]);
  const std::string fill(arguments[1] ? text_of(*arguments[1]) : " ");
  if (count_code_points(fill) != 1) fail("the fill is one character");
  const int64_t room = to_integer(*arguments[0]) - static_cast<int64_t>(owner.chars());
  if (room <= 0) return owner;
  if (where == 'c') return Value(centered(owner.text(), to_integer(*arguments[0]), fill));
  std::string space;
  for (int64_t i = 0; i < room; ++i) space += fill;
  return Value(where == 'l' ? owner.text() + space : space + owner.text());
}

Value zfill(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"width"});
  check_width(arguments[0]);
  const int64_t room = to_integer(*arguments[0]) - static_cast<int64_t>(owner.chars());
  if (room <= 0) return owner;
  const std::string& text = owner.text();
  const bool sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  return Value(text.substr(0, sign) + std::string(static_cast<size_t>(room), '0') +
               text.substr(sign));
}

Value expandtabs(Budget& budget, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"tabsize="});
  const int64_t size = std::max<int64_t>(arguments[0] ? to_integer(*arguments[0]) : 8, 0);
  const std::string& text = owner.text();
  const auto tabs = static_cast<size_t>(std::count(text.begin(), text.end(), '\t'));
  if (tabs > 0)
    budget.check(owner.chars() + tabs * static_cast<size_t>(std::min<int64_t>(size, 1 << 30)));
  std::string result;
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (code == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      result.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      result.append(text, start, at - start);
      column = code == '\n' || code == '\r' ? 0 : column + 1;
    }
  }
  return Value(std::move(result));
}

Value format(Budget& budget, const Value& owner, const Arguments& given) {
  return Value(braces(budget, owner.text(), given));
}

Value format_map(Budget& budget, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"mapping"});
  use(*arguments[0]);
  if (!arguments[0]->is_dict()) fail("a function takes a mapping");
  Arguments named;
  for (const auto& [key, value] : arguments[0]->dict().items) {
    if (key.is_string()) named.named.emplace_back(key.text(), value);
  }
  return Value(braces(budget, owner.text(), named));
}

Value translate(Budget&, const Value&, const Arguments&) {
  fail("it translates characters, which is not supported");
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

bool prints(std::string_view text) { return text.empty() || every<is_printable>(text); }

struct Row {
  const char* name;
  TextMethod run;
};

constexpr Row kMethods[] = {
    {"capitalize", changes<capitalized>},
    {"casefold", changes<folded>},
    {"center", justify<'c'>},
    {"count", count},
    {"endswith", borders<true>},
    {"expandtabs", expandtabs},
    {"find", find<false, false>},
    {"format", format},
    {"format_map", format_map},
    {"index", find<false, true>},
    {"isalnum", asks<every<alphanumeric>>},
    {"isalpha", asks<every<is_alpha>>},
    {"isascii", asks<is_ascii>},
    {"isdecimal", asks<every<is_decimal>>},
    {"isdigit", asks<every<is_digit>>},
    {"isidentifier", asks<is_identifier>},
    {"islower", asks<all_lower>},
    {"isnumeric", asks<every<is_numeric>>},
    {"isprintable", asks<prints>},
    {"isspace", asks<every<is_space>>},
    {"istitle", asks<is_titled>},
    {"isupper", asks<all_upper>},
    {"join", join},
    {"ljust", justify<'l'>},
    {"lower", changes<lower>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", removes<false>},
    {"removesuffix", removes<true>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<'r'>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", borders<false>},
    {"strip", strip<true, true>},
    {"swapcase", changes<swapped>},
    {"title", changes<titled>},
    {"translate", translate},
    {"upper", changes<upper>},
    {"zfill", zfill},
};

}  // namespace

TextMethod find_text_method(std::string_view name) {
  for (const Row& row : kMethods) {
    if (name == row.name) return row.run;
  }
  return nullptr;
}

}  // namespace wherry::jinja
