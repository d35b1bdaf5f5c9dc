#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/tools/python_value.h"
#include "app/value/value.h"

namespace wherry::app {

namespace {

// Returns the value of a hexadecimal digit; 99 for other characters.
int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char letter = static_cast<char>(digit | 0x20);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 99;
}

// Returns a number without its underscores; nothing if one is not between two digits.
std::optional<std::string> joined_digits(std::string_view text, int base) {
  const auto digit = [&](size_t i) { return i < text.size() && value_of(text[i]) < base; };
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
    } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
      return std::nullopt;
    }
  }
  return result;
}

// Returns an integer of any length in decimal.
std::string in_decimal(const std::string& digits, int base) {
  std::string result = "0";  // decimal digits, the least significant first
  for (const char digit : digits) {
    int carry = value_of(digit);
    for (char& place : result) {
      carry += (place - '0') * base;
      place = static_cast<char>('0' + carry % 10);
      carry /= 10;
    }
    for (; carry > 0; carry /= 10) result += static_cast<char>('0' + carry % 10);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

// Parses an integer as Python's int(text, 0) does. It also accepts leading zeros of decimal
// numbers, which Python rejects but models write.
std::optional<std::string> integer(std::string_view text, bool negative) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) text.remove_prefix(text[2] == '_' ? 3 : 2);
  }
  const std::optional<std::string> digits = joined_digits(text, base);
  if (!digits || digits->empty()) return std::nullopt;
  for (const char digit : *digits) {
    if (value_of(digit) >= base) return std::nullopt;
  }
  const std::string result = in_decimal(*digits, base);
  return (negative && result != "0" ? "-" : "") + result;
}

// Parses a finite number without a sign as Python's float(text) does.
std::optional<std::string> real(std::string_view text, bool negative) {
  const std::optional<std::string> digits = joined_digits(text, 10);
  if (!digits || digits->find_first_not_of("0123456789.eE+-") != std::string::npos) {
    return std::nullopt;
  }
  if (digits->empty() || (*digits)[0] == '+' || (*digits)[0] == '-') return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits->c_str(), &end);
  if (*end != '\0' || end == digits->c_str() || !std::isfinite(value)) return std::nullopt;
  return json::float_text(negative ? -value : value);
}

}  // namespace

std::optional<std::string> python_number(std::string_view word) {
  const bool negative = !word.empty() && word[0] == '-';
  if (negative || (!word.empty() && word[0] == '+')) word.remove_prefix(1);
  const std::optional<std::string> integer_text = integer(word, negative);
  return integer_text ? integer_text : real(word, negative);
}

}  // namespace wherry::app
