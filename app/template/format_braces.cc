// Implements pattern.format(...) of Python's str.
#include <algorithm>

#include "app/template/format_field.h"
#include "app/template/operators.h"
#include "app/value/code_points.h"

namespace wherry::jinja {

namespace {

class Braces {
 public:
  Braces(Budget& budget, const std::string& pattern, const Arguments& given)
      : budget_(budget), pattern_(pattern), given_(given) {}

  std::string run() {
    const auto count = static_cast<size_t>(std::count(pattern_.begin(), pattern_.end(), '{'));
    if (count > kFormatFields) fail("it has a format of " + std::to_string(count) + " fields");
    size_t size = 0;
    for (const Value& value : given_.positional) size += size_of(value);
    for (const auto& [name, value] : given_.named) size += size_of(value);
    budget_.check(count_code_points(pattern_) + count * size);
    std::string result;
    for (size_t at = 0; at < pattern_.size();) {
      const char c = pattern_[at];
      const bool doubled = at + 1 < pattern_.size() && pattern_[at + 1] == c;
      if ((c == '{' || c == '}') && doubled) {
        result += c;
        at += 2;
      } else if (c == '}') {
        fail("a } in a format has no {");
      } else if (c == '{') {
        result += field(++at);
      } else {
        result += c;
        ++at;
      }
    }
    return result;
  }

 private:
  std::string field(size_t& at) {
    const size_t end = pattern_.find('}', at);
    if (end == pattern_.npos) fail("a { in a format is not closed");
    std::string inside = pattern_.substr(at, end - at);
    at = end + 1;
    if (inside.find('{') != inside.npos) fail("it has a format of great width");
    std::string spec;
    if (const size_t colon = inside.find(':'); colon != inside.npos) {
      spec = inside.substr(colon + 1);
      inside.resize(colon);
    }
    char conversion = 0;
    if (const size_t mark = inside.find('!'); mark != inside.npos) {
      conversion = mark + 1 < inside.size() ? inside[mark + 1] : '?';
      inside.resize(mark);
    }
    Value value = named(inside);
    if (conversion == 'r' || conversion == 'a') {
      value = Value(repr(value));
    } else if (conversion == 's') {
      value = Value(to_string(value));
    } else if (conversion != 0) {
      fail("a conversion is s, r or a");
    }
    return formatted(value, spec);
  }

  Value named(const std::string& name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string first = name.substr(0, end);
    Value value;
    const bool number = first.find_first_not_of("0123456789") == first.npos;
    if (number) {
      if (manual_ && first.empty()) fail("a format numbers all fields or none");
      manual_ = manual_ || !first.empty();
      const size_t i = first.empty() ? next_++ : first.size() > 6 ? SIZE_MAX : std::stoul(first);
      if (i >= given_.positional.size()) fail("a format has too few values");
      value = given_.positional[i];
    } else {
      const Value* match = given_.by_name(first);
      if (match == nullptr) fail("a format has no value " + first);
      value = *match;
    }
    for (size_t at = end; at < name.size();) value = inner(value, name, at);
    return value;
  }

  Value inner(const Value& value, const std::string& name, size_t& at) {
    if (name[at] == '.') {
      const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
      const std::string key = name.substr(at + 1, end - at - 1);
      at = end;
      return attribute(value, Value(key));
    }
    const size_t close = name.find(']', at);
    if (close == name.npos) fail("a [ in a format is not closed");
    const std::string key = name.substr(at + 1, close - at - 1);
    at = close + 1;
    const bool number =
        !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == key.npos;
    return item(value, number ? Value(static_cast<int64_t>(std::stol(key))) : Value(key));
  }

  static std::string formatted(const Value& value, const std::string& spec) {
    FormatField field;
    size_t at = 0;
    const auto is_align = [&](size_t i) {
      return i < spec.size() && std::string_view("<>=^").find(spec[i]) != std::string_view::npos;
    };
    if (!spec.empty()) {
      size_t second = 0;
      next_code_point(spec, second);
      if (is_align(second)) {
        field.fill = spec.substr(0, second);
        field.align = spec[second];
        at = second + 1;
      } else if (is_align(0)) {
        field.align = spec[at++];
      }
    }
    const auto take = [&](char c) { return at < spec.size() && spec[at] == c && ++at; };
    for (char sign : {'+', '-', ' '}) {
      if (take(sign)) field.sign = sign;
    }
    field.alternate = take('#');
    if (take('0') && field.align == 0) {
      field.fill = "0";
      field.align = '=';
    }
    field.width = format_digits(spec, at);
    field.comma = take(',');
    field.underscore = take('_');
    if (take('.')) field.precision = static_cast<int>(format_digits(spec, at));
    if (at < spec.size()) field.type = spec[at++];
    if (at < spec.size()) fail("Invalid format specifier");
    return written(value, field, spec);
  }

  static std::string written(const Value& value, FormatField& field, const std::string& spec) {
    const auto wrong = [&] { fail(std::string("the value has no format ") + field.type); };
    if (value.is_string()) {
      if (field.type != 0 && field.type != 's') wrong();
      if (field.align == '=') {
        if (field.fill != "0") fail("a text is not aligned by =");
        field.align = '<';
      }
      return formatted_text(field, value.text(), '<');
    }
    const bool as_text = value.is(Kind::kBool) && field.type == 0;
    if (value.is_number() && !(as_text && spec.empty())) {
      if (value.is_integer()) {
        if (field.type == 0 || field.type == 'n') field.type = 'd';
        if (field.type == 'c') {
          std::string text;
          append_code_point(text, static_cast<char32_t>(value.integer()));
          return formatted_text(field, text, '<');
        }
        if (std::string_view("bdoxXeEfFgG%").find(field.type) == std::string_view::npos) wrong();
      } else if (field.type != 0 &&
                 std::string_view("eEfFgGn%").find(field.type) == std::string_view::npos) {
        wrong();
      }
      return formatted_number(field, value);
    }
    if (!spec.empty()) fail("the value takes no format");
    return to_string(value);
  }

  Budget& budget_;
  const std::string& pattern_;
  const Arguments& given_;
  size_t next_ = 0;
  bool manual_ = false;
};

}  // namespace

std::string braces(Budget& budget, const std::string& pattern, const Arguments& given) {
  return Braces(budget, pattern, given).run();
}

}  // namespace wherry::jinja
