// Implements Python's str() and repr() of values.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "app/value/code_points.h"
#include "app/value/unicode/characters.h"
#include "app/value/value.h"

namespace wherry::json {

namespace {

void append_escaped(std::string& result, char32_t code) {
  char text[12];
  const char* form = code <= 0xFF ? "\\x%02x" : code <= 0xFFFF ? "\\u%04x" : "\\U%08x";
  std::snprintf(text, sizeof text, form, static_cast<unsigned>(code));
  result += text;
}

// Returns the items as text between brackets.
std::string listed(const Values& items, const char* open, const char* close) {
  std::string result = open;
  for (size_t i = 0; i < items.size(); ++i) result += (i ? ", " : "") + repr(items[i]);
  return result + close;
}

std::string dict_text(const Dict& dict) {
  std::string result = "{";
  for (const auto& [key, value] : dict.items) {
    if (result.size() > 1) result += ", ";
    result += repr(key) + ": " + repr(value);
  }
  return result + "}";
}

std::string range_text(const Range& range) {
  std::string result = "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
  return result + (range.step == 1 ? ")" : ", " + std::to_string(range.step) + ")");
}

std::string view_text(const Value& value) {
  Values items;
  const auto& view = value.as<View>();
  for (size_t i = 0; i < view.of.dict().items.size(); ++i) items.push_back(view.item(i));
  return std::string(type_name(value)) + listed(items, "([", "])");
}

// Returns the digits of the shortest text that parses to this number; `exponent` gets the first
// digit's exponent.
std::string shortest_digits(double value, int& exponent) {
  char text[32];
  for (int precision = 0; precision < 17; ++precision) {
    std::snprintf(text, sizeof text, "%.*e", precision, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  std::string digits;
  const char* at = text;
  for (; *at != 'e'; ++at) {
    if (*at >= '0' && *at <= '9') digits += *at;
  }
  exponent = std::atoi(at + 1);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  return digits;
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  int exponent = 0;
  std::string digits = shortest_digits(std::fabs(value), exponent), decimal;
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    decimal = digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "");
    char text[16];
    std::snprintf(text, sizeof text, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    decimal += text;
  } else if (exponent < 0) {
    decimal = "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  } else if (exponent + 1 >= count) {
    decimal = digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  } else {
    decimal = digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
  }
  return (value < 0 ? "-" : "") + decimal;
}

std::string repr_text(std::string_view text) {
  const bool doubled =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  std::string result(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t code = unicode::next_code_point(text, at);
    if (code == '\\' || code == static_cast<char32_t>(quote)) {
      result += '\\';
      result += static_cast<char>(code);
    } else if (code == '\n') {
      result += "\\n";
    } else if (code == '\r') {
      result += "\\r";
    } else if (code == '\t') {
      result += "\\t";
    } else if (unicode::is_printable(code)) {
      result += text.substr(start, at - start);
    } else {
      append_escaped(result, code);
    }
  }
  return result + quote;
}

std::string to_string(const Value& value) {
  if (value.is_string()) return value.text();
  return value.is(Kind::kUndefined) ? "" : repr(value);
}

std::string repr(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.integer() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.integer());
    case Kind::kFloat:
      return float_text(value.number());
    case Kind::kString:
      return value.is_markup() ? "Markup(" + repr_text(value.text()) + ")"
                               : repr_text(value.text());
    case Kind::kList:
      return listed(value.items(), "[", "]");
    case Kind::kTuple:
      return listed(value.items(), "(", value.items().size() == 1 ? ",)" : ")");
    case Kind::kDict:
      return dict_text(value.dict());
    case Kind::kRange:
      return range_text(value.as<Range>());
    case Kind::kView:
      return view_text(value);
    case Kind::kNamespace:
      return "<Namespace>";
    case Kind::kLoop:
    case Kind::kFunction:
    case Kind::kIterator:
      return value.object()->repr();
  }
  return "";
}

}  // namespace wherry::json
