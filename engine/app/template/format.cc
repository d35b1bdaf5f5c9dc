// pattern % values and pattern.format(...).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/template/code_points.h"
#include "app/template/operators.h"

namespace wherry::jinja {

namespace {

constexpr size_t kFields = 10'000;

// What a field asks for, in both languages of formats.
struct Field {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, comma = false, underscore = false;
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

std::string by_c(const char* form, int precision, double value) {
  char text[512];
  const int needed = std::snprintf(text, sizeof text, form, precision, value);
  if (needed < static_cast<int>(sizeof text)) return text;
  std::string longer(static_cast<size_t>(needed) + 1, '\0');
  std::snprintf(longer.data(), longer.size(), form, precision, value);
  longer.pop_back();
  return longer;
}

std::string in_base(uint64_t value, unsigned base, bool capital) {
  std::string made;
  do {
    made += (capital ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    value /= base;
  } while (value > 0);
  std::reverse(made.begin(), made.end());
  return made;
}

void group(std::string& digits, char sign) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, sign);
}

// The digits of a number without its sign.
std::string digits_of_integer(const Field& field, uint64_t magnitude) {
  switch (field.type) {
    case 'x':
    case 'X':
      return (field.alternate ? std::string("0") + field.type : "") +
             in_base(magnitude, 16, field.type == 'X');
    case 'o':
      return (field.alternate ? "0o" : "") + in_base(magnitude, 8, false);
    case 'b':
      return (field.alternate ? "0b" : "") + in_base(magnitude, 2, false);
    default:
      return in_base(magnitude, 10, false);
  }
}

std::string digits_of_float(const Field& field, double value) {
  if (std::isnan(value)) return std::isupper(field.type) ? "NAN" : "nan";
  if (std::isinf(value)) return std::isupper(field.type) ? "INF" : "inf";
  const int precision = field.precision < 0 ? 6 : field.precision;
  switch (field.type) {
    case 'e':
      return by_c("%.*e", precision, value);
    case 'E':
      return by_c("%.*E", precision, value);
    case 'g':
      return by_c(field.alternate ? "%#.*g" : "%.*g", precision, value);
    case 'G':
      return by_c(field.alternate ? "%#.*G" : "%.*G", precision, value);
    case '%':
      return by_c("%.*f", precision, value * 100) + "%";
    case 0:  // as repr, or with so many digits
      if (field.precision < 0) return float_text(value);
      {
        std::string made = by_c("%.*g", std::max(precision, 1), value);
        if (made.find_first_of(".e") == made.npos) made += ".0";
        return made;
      }
    default:
      return by_c("%.*f", precision, value);
  }
}

std::string padded(const Field& field, const std::string& sign, const std::string& text,
                   char usual) {
  const char align = field.align ? field.align : usual;
  const auto size = static_cast<int64_t>(count_code_points(text) + sign.size());
  std::string left, right;
  const int64_t room = std::max<int64_t>(field.width - size, 0);
  const int64_t before = align == '<' ? 0 : align == '^' ? room / 2 : room;
  for (int64_t i = 0; i < before; ++i) left += field.fill;
  for (int64_t i = before; i < room; ++i) right += field.fill;
  return align == '=' ? sign + left + text : left + sign + text + right;
}

std::string number(const Field& field, const Value& value) {
  bool below = false;
  std::string text;
  if (value.is_integer() && field.type != 'f' && field.type != 'F' && field.type != 'e' &&
      field.type != 'E' && field.type != 'g' && field.type != 'G' && field.type != '%') {
    below = value.integer() < 0;
    const auto bits = static_cast<uint64_t>(value.integer());
    text = digits_of_integer(field, below ? 0 - bits : bits);
  } else {
    below = std::signbit(value.number()) && !std::isnan(value.number());
    text = digits_of_float(field, std::fabs(value.number()));
  }
  if (field.comma) group(text, ',');
  if (field.underscore) group(text, '_');
  const std::string sign = below ? "-" : field.sign == '-' ? "" : std::string(1, field.sign);
  return padded(field, sign, text, '>');
}

std::string some_text(const Field& field, const std::string& text, char usual) {
  if (field.precision < 0) return padded(field, "", text, usual);
  return padded(field, "", text.substr(0, byte_of(text, static_cast<size_t>(field.precision))),
                usual);
}

// Digits at `at`, at most four of them.
int64_t digits(const std::string& text, size_t& at) {
  int64_t made = 0;
  const size_t start = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    if (at - start == 4) fail("it has a format of great width");
    made = made * 10 + (text[at++] - '0');
  }
  return made;
}

// ---- % ----

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
    if (count > kFields) fail("it has a format of " + std::to_string(count) + " fields");
    budget_.check(count_code_points(pattern_) + count * size_of(values_));
    std::string made;
    for (size_t at = 0; at < pattern_.size();) {
      const size_t sign = pattern_.find('%', at);
      made.append(pattern_, at, sign - at);
      if (sign == pattern_.npos) break;
      at = sign + 1;
      made += field(at);
    }
    const bool left = tuple_ ? next_ < values_.items().size() : !used_;
    const bool mapping =  // to Python what has items is one
        values_.is_dict() || values_.is_sequence() || values_.is(Kind::kUndefined);
    if (left && !mapping) unused();
    if (left && tuple_) unused();
    return made;
  }

 private:
  [[noreturn]] static void unused() {
    fail("TypeError", "not all arguments converted during string formatting");
  }

  const Value& argument() {
    if (!tuple_) {
      if (used_) fail("TypeError", "not enough arguments for format string");
      used_ = true;
      return values_;
    }
    if (next_ == values_.items().size()) {
      fail("TypeError", "not enough arguments for format string");
    }
    return values_.items()[next_++];
  }

  std::string field(size_t& at) {
    Field field;
    const Value* named = nullptr;
    if (at < pattern_.size() && pattern_[at] == '(') {
      const size_t end = pattern_.find(')', at);
      if (end == pattern_.npos) fail("ValueError", "incomplete format key");
      if (!values_.is_dict()) fail("TypeError", "format requires a mapping");
      const std::string key = pattern_.substr(at + 1, end - at - 1);
      named = values_.dict().find(std::string_view(key));
      if (named == nullptr) fail("KeyError", repr_text(key));
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
    field.width = digits(pattern_, at);
    if (at < pattern_.size() && pattern_[at] == '.') {
      ++at;
      if (at < pattern_.size() && pattern_[at] == '*') fail("it has a format of great width");
      field.precision = static_cast<int>(digits(pattern_, at));
    }
    while (at < pattern_.size() &&
           std::string_view("hlL").find(pattern_[at]) != std::string_view::npos) {
      ++at;
    }
    if (at == pattern_.size()) fail("ValueError", "incomplete format");
    field.type = pattern_[at++];
    if (field.type == '%') return "%";
    field.align = left ? '<' : 0;
    return converted(field, named != nullptr ? *named : argument(), zero && !left, at - 1);
  }

  std::string converted(Field& field, const Value& value, bool zero, size_t at) {
    const char type = field.type;
    if (type == 's') return some_text(field, escapes_ ? escaped(value) : to_string(value), '>');
    if (type == 'r' || type == 'a') return some_text(field, repr(value), '>');
    if (type == 'c') {
      if (value.is_string() && value.chars() == 1) return some_text(field, value.text(), '>');
      if (!value.is_integer()) fail("TypeError", "%c requires int or char");
      std::string text;
      append_code_point(text, static_cast<char32_t>(value.integer()));
      return some_text(field, text, '>');
    }
    if (std::string_view("diuxXoeEfFgG").find(type) == std::string_view::npos) {
      char text[8];
      std::snprintf(text, sizeof text, "0x%x", static_cast<unsigned char>(type));
      fail("ValueError",
           std::string("unsupported format character '") + type + "' (" + text + ") at index " +
               std::to_string(count_code_points(std::string_view(pattern_).substr(0, at))));
    }
    use(value);
    const bool whole_number = std::string_view("diuxXo").find(type) != std::string_view::npos;
    if (!value.is_number()) {
      if (!whole_number)
        fail("TypeError", std::string("must be real number, not ") + type_name(value));
      fail("TypeError",
           std::string("%") + type + " format: a" +
               (type == 'd' || type == 'i' || type == 'u' ? " real number" : "n integer") +
               " is required, not " + type_name(value));
    }
    if (zero) {
      field.fill = "0";
      field.align = '=';
    }
    if (!whole_number) return number(field, value);
    if (field.type == 'i' || field.type == 'u') field.type = 'd';
    if (!value.is_integer() && field.type != 'd') {
      fail("TypeError", std::string("%") + type + " format: an integer is required, not float");
    }
    const Value cut(static_cast<int64_t>(value.is_integer() ? value.integer() : value.number()));
    return number(field, cut);
  }

  Budget& budget_;
  const std::string& pattern_;
  const Value& values_;
  const bool tuple_, escapes_;
  size_t next_ = 0;
  bool used_ = false;
};

// ---- format ----

class Braces {
 public:
  Braces(Budget& budget, const std::string& pattern, const Arguments& given)
      : budget_(budget), pattern_(pattern), given_(given) {}

  std::string run() {
    const auto count = static_cast<size_t>(std::count(pattern_.begin(), pattern_.end(), '{'));
    if (count > kFields) fail("it has a format of " + std::to_string(count) + " fields");
    size_t size = 0;
    for (const Value& value : given_.positional) size += size_of(value);
    for (const auto& [name, value] : given_.named) size += size_of(value);
    budget_.check(count_code_points(pattern_) + count * size);
    std::string made;
    for (size_t at = 0; at < pattern_.size();) {
      const char c = pattern_[at];
      const bool doubled = at + 1 < pattern_.size() && pattern_[at + 1] == c;
      if ((c == '{' || c == '}') && doubled) {
        made += c;
        at += 2;
      } else if (c == '}') {
        fail("ValueError", "Single '}' encountered in format string");
      } else if (c == '{') {
        made += field(++at);
      } else {
        made += c;
        ++at;
      }
    }
    return made;
  }

 private:
  std::string field(size_t& at) {
    const size_t end = pattern_.find('}', at);
    if (end == pattern_.npos) {
      fail("ValueError", at == pattern_.size() ? "Single '{' encountered in format string"
                                               : "expected '}' before end of string");
    }
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
      fail("ValueError", std::string("Unknown conversion specifier ") + conversion);
    }
    return formatted(value, spec);
  }

  Value named(const std::string& name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string first = name.substr(0, end);
    Value value;
    const bool number = first.find_first_not_of("0123456789") == first.npos;
    if (number) {
      if (manual_ && first.empty()) {
        fail("ValueError",
             "cannot switch from manual field specification to automatic field numbering");
      }
      manual_ = manual_ || !first.empty();
      const size_t i = first.empty() ? next_++ : first.size() > 6 ? SIZE_MAX : std::stoul(first);
      if (i >= given_.positional.size()) {
        fail("IndexError",
             "Replacement index " + std::to_string(i) + " out of range for positional args tuple");
      }
      value = given_.positional[i];
    } else {
      const Value* found = given_.by_name(first);
      if (found == nullptr) fail("KeyError", repr_text(first));
      value = *found;
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
    if (close == name.npos) fail("ValueError", "Missing ']' in format string");
    const std::string key = name.substr(at + 1, close - at - 1);
    at = close + 1;
    const bool number =
        !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == key.npos;
    return item(value, number ? Value(static_cast<int64_t>(std::stol(key))) : Value(key));
  }

  static std::string formatted(const Value& value, const std::string& spec) {
    Field field;
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
    field.width = digits(spec, at);
    field.comma = take(',');
    field.underscore = take('_');
    if (take('.')) field.precision = static_cast<int>(digits(spec, at));
    if (at < spec.size()) field.type = spec[at++];
    if (at < spec.size()) fail("ValueError", "Invalid format specifier");
    return written(value, field, spec);
  }

  static std::string written(const Value& value, Field& field, const std::string& spec) {
    const auto wrong = [&] {
      fail("ValueError", std::string("Unknown format code '") + field.type +
                             "' for object of type '" + type_name(value) + "'");
    };
    if (value.is_string()) {
      if (field.type != 0 && field.type != 's') wrong();
      if (field.align == '=') {
        if (field.fill != "0")
          fail("ValueError", "'=' alignment not allowed in string format specifier");
        field.align = '<';
      }
      return some_text(field, value.text(), '<');
    }
    const bool as_text = value.is(Kind::kBool) && field.type == 0;
    if (value.is_number() && !(as_text && spec.empty())) {
      if (value.is_integer()) {
        if (field.type == 0 || field.type == 'n') field.type = 'd';
        if (field.type == 'c') {
          std::string text;
          append_code_point(text, static_cast<char32_t>(value.integer()));
          return some_text(field, text, '<');
        }
        if (std::string_view("bdoxXeEfFgG%").find(field.type) == std::string_view::npos) wrong();
      } else if (field.type != 0 &&
                 std::string_view("eEfFgGn%").find(field.type) == std::string_view::npos) {
        wrong();
      }
      return number(field, value);
    }
    if (!spec.empty()) {
      fail("TypeError",
           std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
    }
    return to_string(value);
  }

  Budget& budget_;
  const std::string& pattern_;
  const Arguments& given_;
  size_t next_ = 0;
  bool manual_ = false;
};

}  // namespace

std::string percent(Budget& budget, const std::string& pattern, const Value& values, bool escapes) {
  return Percent(budget, pattern, values, escapes).run();
}

std::string braces(Budget& budget, const std::string& pattern, const Arguments& given) {
  return Braces(budget, pattern, given).run();
}

std::string fixed(double value, int precision) { return by_c("%.*f", precision, value); }

}  // namespace wherry::jinja
