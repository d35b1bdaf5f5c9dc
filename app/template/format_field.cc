#include "app/template/format_field.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/template/operators.h"
#include "app/value/code_points.h"

namespace wherry::jinja {

namespace {

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
  std::string result;
  do {
    result += (capital ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    value /= base;
  } while (value > 0);
  std::reverse(result.begin(), result.end());
  return result;
}

void group(std::string& digits, char sign) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, sign);
}

// Returns the digits of an integer without its sign, in the base of the field.
std::string digits_of_integer(const FormatField& field, uint64_t magnitude) {
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

std::string digits_of_float(const FormatField& field, double value) {
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
    case 0:  // formats as repr does, or with the given number of digits
      if (field.precision < 0) return float_text(value);
      {
        std::string result = by_c("%.*g", std::max(precision, 1), value);
        if (result.find_first_of(".e") == result.npos) result += ".0";
        return result;
      }
    default:
      return by_c("%.*f", precision, value);
  }
}

std::string padded(const FormatField& field, const std::string& sign, const std::string& text,
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

}  // namespace

std::string formatted_number(const FormatField& field, const Value& value) {
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

std::string formatted_text(const FormatField& field, const std::string& text, char usual) {
  if (field.precision < 0) return padded(field, "", text, usual);
  return padded(field, "", text.substr(0, byte_of(text, static_cast<size_t>(field.precision))),
                usual);
}

int64_t format_digits(const std::string& text, size_t& at) {
  int64_t result = 0;
  const size_t start = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    if (at - start == 4) fail("it has a format of great width");
    result = result * 10 + (text[at++] - '0');
  }
  return result;
}

std::string fixed(double value, int precision) { return by_c("%.*f", precision, value); }

}  // namespace wherry::jinja
