// Implements pattern % values of Python's str.
#include <algorithm>
#include <cstdio>

#include "app/template/format_field.h"
#include "app/template/operators.h"
#include "app/value/code_points.h"

namespace wherry::jinja {

namespace {

class Percent {
 public:
  Percent(Budget& budget, const std::string& pattern, const Value& values, bool escapes)
      : budget_(budget),
        pattern_(pattern),
        values_(values),
        tuple_(values.is(Kind::kTuple)),
        escapes_(escapes) {}

  std::string run() {
    const auto count = static_cast<size_t>(std::count(pattern_.begin(), pattern_.end(), '%'));
    if (count > kFormatFields) fail("it has a format of " + std::to_string(count) + " fields");
    budget_.check(count_code_points(pattern_) + count * size_of(values_));
    std::string result;
    for (size_t at = 0; at < pattern_.size();) {
      const size_t sign = pattern_.find('%', at);
      result.append(pattern_, at, sign - at);
      if (sign == pattern_.npos) break;
      at = sign + 1;
      result += field(at);
    }
    const bool left = tuple_ ? next_ < values_.items().size() : !used_;
    const bool mapping =  // whether Python would look up items by name
        values_.is_dict() || values_.is_sequence() || values_.is(Kind::kUndefined);
    if (left && !mapping) unused();
    if (left && tuple_) unused();
    return result;
  }

 private:
  [[noreturn]] static void unused() { fail("% has too many values"); }

  const Value& argument() {
    if (!tuple_) {
      if (used_) fail("% has too few values");
      used_ = true;
      return values_;
    }
    if (next_ == values_.items().size()) fail("% has too few values");
    return values_.items()[next_++];
  }

  std::string field(size_t& at) {
    FormatField field;
    const Value* named = nullptr;
    if (at < pattern_.size() && pattern_[at] == '(') {
      const size_t end = pattern_.find(')', at);
      if (end == pattern_.npos) fail("a % format is not complete");
      if (!values_.is_dict()) fail("% with names takes a mapping");
      const std::string key = pattern_.substr(at + 1, end - at - 1);
      named = values_.dict().find(std::string_view(key));
      if (named == nullptr) fail("a format has no value " + key);
      at = end + 1;
      used_ = true;
    }
    bool zero = false, left = false;
    for (; at < pattern_.size() &&
           std::string_view("-+ #0").find(pattern_[at]) != std::string_view::npos;
         ++at) {
      const char flag = pattern_[at];
      left = left || flag == '-';
      zero = zero || flag == '0';
      field.alternate = field.alternate || flag == '#';
      if (flag == '+' || (flag == ' ' && field.sign != '+')) field.sign = flag;
    }
    if (at < pattern_.size() && pattern_[at] == '*') fail("it has a format of great width");
    field.width = format_digits(pattern_, at);
    if (at < pattern_.size() && pattern_[at] == '.') {
      ++at;
      if (at < pattern_.size() && pattern_[at] == '*') fail("it has a format of great width");
      field.precision = static_cast<int>(format_digits(pattern_, at));
    }
    while (at < pattern_.size() &&
           std::string_view("hlL").find(pattern_[at]) != std::string_view::npos) {
      ++at;
    }
    if (at == pattern_.size()) fail("a % format is not complete");
    field.type = pattern_[at++];
    if (field.type == '%') return "%";
    field.align = left ? '<' : 0;
    return converted(field, named != nullptr ? *named : argument(), zero && !left);
  }

  std::string converted(FormatField& field, const Value& value, bool zero) {
    const char type = field.type;
    if (type == 's')
      return formatted_text(field, escapes_ ? escaped(value) : to_string(value), '>');
    if (type == 'r' || type == 'a') return formatted_text(field, repr(value), '>');
    if (type == 'c') {
      if (value.is_string() && value.chars() == 1) return formatted_text(field, value.text(), '>');
      if (!value.is_integer()) fail("%c takes a character");
      std::string text;
      append_code_point(text, static_cast<char32_t>(value.integer()));
      return formatted_text(field, text, '>');
    }
    if (std::string_view("diuxXoeEfFgG").find(type) == std::string_view::npos) {
      fail(std::string("there is no format %") + type);
    }
    use(value);
    const bool is_integer = std::string_view("diuxXo").find(type) != std::string_view::npos;
    if (!value.is_number()) fail(std::string("%") + type + " takes a number");
    if (zero) {
      field.fill = "0";
      field.align = '=';
    }
    if (!is_integer) return formatted_number(field, value);
    if (field.type == 'i' || field.type == 'u') field.type = 'd';
    if (!value.is_integer() && field.type != 'd') {
      fail(std::string("%") + type + " takes a whole number");
    }
    const Value cut(static_cast<int64_t>(value.is_integer() ? value.integer() : value.number()));
    return formatted_number(field, cut);
  }

  Budget& budget_;
  const std::string& pattern_;
  const Value& values_;
  const bool tuple_, escapes_;
  size_t next_ = 0;
  bool used_ = false;
};

}  // namespace

std::string percent(Budget& budget, const std::string& pattern, const Value& values, bool escapes) {
  return Percent(budget, pattern, values, escapes).run();
}

}  // namespace wherry::jinja
