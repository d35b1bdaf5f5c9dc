#include "app/value/json_text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "app/value/code_points.h"

namespace wherry::json {

namespace {

class Writer {
 public:
  Writer(const JsonStyle& style, const std::function<void(size_t)>& check)
      : style_(style), check_(check) {}

  void write(const Value& value, int level) {
    switch (value.kind()) {
      case Kind::kNone:
        return add("null");
      case Kind::kBool:
        return add(value.integer() ? "true" : "false");
      case Kind::kInt:
        return add(std::to_string(value.integer()));
      case Kind::kFloat:
        return add(number(value.number()));
      case Kind::kString:
        return quote(value.text());
      case Kind::kList:
      case Kind::kTuple:
        return list(value.items(), level);
      case Kind::kDict:
        return dict(value.dict(), level);
      default:
        fail("the value has no form in JSON");
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void add(std::string_view text) {
    text_ += text;
    if (check_) check_(text_.size() / 4);  // a character has at most 4 bytes
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  // Whether a byte can be written without an escape.
  bool plain(char byte) const {
    const auto code = static_cast<unsigned char>(byte);
    return code >= 0x20 && code != '"' && code != '\\' && (code <= 0x7E || !style_.ensure_ascii);
  }

  void quote(std::string_view text) {
    text_ += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      while (at < text.size() && plain(text[at])) ++at;
      if (at > start) {
        text_.append(text, start, at - start);
        continue;
      }
      const char32_t code = unicode::next_code_point(text, at);
      static constexpr std::string_view kLetters = "bfnrt", kMeant = "\b\f\n\r\t";
      const size_t match = code < 128 ? kMeant.find(static_cast<char>(code)) : kMeant.npos;
      if (code == '"' || code == '\\') {
        text_ += '\\';
        text_ += static_cast<char>(code);
      } else if (match != kMeant.npos) {
        text_ += '\\';
        text_ += kLetters[match];
      } else {
        escape(code);
      }
    }
    add("\"");
  }

  void escape(char32_t code) {
    char text[16];
    if (code > 0xFFFF) {
      const auto rest = static_cast<unsigned>(code - 0x10000);
      std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (rest >> 10),
                    0xDC00 + (rest & 0x3FF));
    } else {
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
    }
    text_ += text;
  }

  void line(int level) {
    if (!style_.indent) return;
    text_ += '\n';
    for (int i = 0; i < level; ++i) text_ += *style_.indent;
  }

  // Writes the separator before an item. With an indent, Python's default separator has no space
  // before the line break.
  void between(bool first, int level) {
    if (!first) text_ += style_.comma;
    line(level);
  }

  void list(const Values& items, int level) {
    if (items.empty()) return add("[]");
    text_ += '[';
    bool first = true;
    for (const Value& item : items) {
      between(std::exchange(first, false), level + 1);
      write(item, level + 1);
    }
    line(level);
    add("]");
  }

  static std::string key(const Value& value) {
    switch (value.kind()) {
      case Kind::kString:
        return value.text();
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return value.integer() ? "true" : "false";
      case Kind::kInt:
        return std::to_string(value.integer());
      case Kind::kFloat:
        return number(value.number());
      default:
        fail("a key has no form in JSON");
    }
  }

  void dict(const Dict& dict, int level) {
    if (dict.items.empty()) return add("{}");
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(), [](const auto* a, const auto* b) {
        return compare(a->first, b->first, "<") < 0;
      });
    }
    text_ += '{';
    bool first = true;
    for (const auto* item : items) {
      between(std::exchange(first, false), level + 1);
      quote(key(item->first));
      text_ += style_.colon;
      write(item->second, level + 1);
    }
    line(level);
    add("}");
  }

  const JsonStyle& style_;
  const std::function<void(size_t)>& check_;
  std::string text_;
};

// Builds the values of a text that json_error() has accepted.
class Builder {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  Value value() {  // NOLINT(misc-no-recursion): JsonRules::levels bounds it
    blank();
    switch (text_[at_]) {
      case '"':
        return string();
      case '{':
        return object();
      case '[':
        return list();
      case 'n':
        return at_ += 4, Value();
      case 't':
        return at_ += 4, Value(true);
      case 'f':
        return at_ += 5, Value(false);
      case 'N':
        return at_ += 3, Value(std::nan(""));
      default:
        return number();
    }
  }

 private:
  void blank() { at_ = skip_blank(text_, at_); }

  Value string() { return Value(read_string(text_, at_, buffer_)); }

  Value number() {
    const size_t start = at_;
    const bool negative = text_[at_] == '-';
    if (text_[at_ + negative] == 'I') {
      at_ += negative + std::string_view("Infinity").size();
      return Value(negative ? -HUGE_VAL : HUGE_VAL);
    }
    at_ = std::min(text_.find_first_not_of("-0123456789", at_), text_.size());
    bool integer = true;
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
      integer = false;
      at_ = std::min(text_.find_first_not_of("-+.eE0123456789", at_), text_.size());
    }
    const std::string digits(text_.substr(start, at_ - start));
    errno = 0;
    if (integer) {
      const long long value = std::strtoll(digits.c_str(), nullptr, 10);
      // Integers beyond 63 bits become doubles, because only seeds are that large.
      if (errno != ERANGE) return Value(static_cast<int64_t>(value));
    }
    return Value(std::strtod(digits.c_str(), nullptr));
  }

  Value list() {  // NOLINT(misc-no-recursion)
    Values items;
    for (++at_, blank(); text_[at_] != ']'; blank()) {
      items.push_back(value());
      separator();
    }
    ++at_;
    return make_list(std::move(items));
  }

  Value object() {  // NOLINT(misc-no-recursion)
    auto dict = std::make_shared<Dict>();
    for (++at_, blank(); text_[at_] != '}'; blank()) {
      const Value key = string();
      separator();
      dict->set(key, value());
      separator();
    }
    ++at_;
    return Value(Kind::kDict, std::move(dict));
  }

  void separator() {
    blank();
    if (text_[at_] == ',' || text_[at_] == ':') ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string buffer_;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style,
                    const std::function<void(size_t)>& check) {
  Writer writer(style, check);
  writer.write(value, 0);
  return writer.take();
}

std::string to_compact_json(const Value& value) {
  JsonStyle style;
  style.comma = ",";
  style.colon = ":";
  return to_json(value, style);
}

Value from_json(std::string_view text, Halves halves) {
  JsonRules rules;
  rules.halves = halves;
  if (const auto error = json_error(text, rules)) fail(*error);
  return Builder(text).value();
}

}  // namespace wherry::json
