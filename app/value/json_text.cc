#include "app/value/json_text.h"

#include <algorithm>
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

  std::string take() { return std::move(made_); }

 private:
  void add(std::string_view text) {
    made_ += text;
    if (check_) check_(made_.size() / 4);  // a character has at most 4 bytes
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
    made_ += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      while (at < text.size() && plain(text[at])) ++at;
      if (at > start) {
        made_.append(text, start, at - start);
        continue;
      }
      const char32_t code = unicode::next_code_point(text, at);
      static constexpr std::string_view kLetters = "bfnrt", kMeant = "\b\f\n\r\t";
      const size_t found = code < 128 ? kMeant.find(static_cast<char>(code)) : kMeant.npos;
      if (code == '"' || code == '\\') {
        made_ += '\\';
        made_ += static_cast<char>(code);
      } else if (found != kMeant.npos) {
        made_ += '\\';
        made_ += kLetters[found];
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
    made_ += text;
  }

  void line(int level) {
    if (!style_.indent) return;
    made_ += '\n';
    for (int i = 0; i < level; ++i) made_ += *style_.indent;
  }

  // Writes the separator before an item. With an indent, Python's default separator has no space
  // before the line break.
  void between(bool first, int level) {
    if (!first) made_ += style_.comma;
    line(level);
  }

  void list(const Values& items, int level) {
    if (items.empty()) return add("[]");
    made_ += '[';
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
    made_ += '{';
    bool first = true;
    for (const auto* item : items) {
      between(std::exchange(first, false), level + 1);
      quote(key(item->first));
      made_ += style_.colon;
      write(item->second, level + 1);
    }
    line(level);
    add("}");
  }

  const JsonStyle& style_;
  const std::function<void(size_t)>& check_;
  std::string made_;
};

constexpr int kDeepestJson = 64;

class Reader {
 public:
  Reader(std::string_view text, Halves halves) : text_(text), halves_(halves) {}

  Value all() {
    Value value = any();
    space();
    if (at_ < text_.size()) bad("Extra data", at_);
    return value;
  }

 private:
  [[noreturn]] void bad(const char* what, size_t at) const {
    const std::string_view before = text_.substr(0, std::min(at, text_.size()));
    const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    const size_t column = unicode::count_code_points(before.substr(start)) + 1;
    fail(std::string(what) + ": line " + std::to_string(line) + " column " +
         std::to_string(column) + " (char " + std::to_string(unicode::count_code_points(before)) +
         ")");
  }

  void space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(std::string_view word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  Value any() {
    space();
    const char c = peek();
    if (c == '"') return Value(string());
    if (c == '{' || c == '[') {
      if (++depth_ > kDeepestJson) {
        fail("it has more than " + std::to_string(kDeepestJson) + " levels");
      }
      Value made = c == '{' ? object() : list();
      --depth_;
      return made;
    }
    if (skip("null")) return Value();
    if (skip("true")) return Value(true);
    if (skip("false")) return Value(false);
    if (skip("NaN")) return Value(std::nan(""));
    if (skip("Infinity")) return Value(HUGE_VAL);
    if (skip("-Infinity")) return Value(-HUGE_VAL);
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    bad("Expecting value", at_);
  }

  Value number() {
    const size_t start = at_;
    const auto digits = [&] {
      const size_t from = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ - from;
    };
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else if (digits() == 0) {
      bad("Expecting value", start);
    }
    bool whole = true;
    const size_t end = at_;
    if (peek() == '.') {
      ++at_;
      if (digits() == 0) {
        at_ = end;
      } else {
        whole = false;
      }
    }
    const size_t mantissa = at_;
    if ((peek() | 0x20) == 'e') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) {
        at_ = mantissa;
      } else {
        whole = false;
      }
    }
    const std::string text(text_.substr(start, at_ - start));
    if (!whole) return Value(std::strtod(text.c_str(), nullptr));
    errno = 0;
    const long long value = std::strtoll(text.c_str(), nullptr, 10);
    // Integers beyond 63 bits become doubles, because only seeds are that large.
    if (errno == ERANGE) return Value(std::strtod(text.c_str(), nullptr));
    return Value(static_cast<int64_t>(value));
  }

  int hex4(size_t at) const {
    if (at + 4 > text_.size()) return -1;
    int code = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const char c = text_[i];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return -1;
      code = code * 16 + digit;
    }
    return code;
  }

  std::string string() {
    const size_t start = at_++;
    std::string made;
    while (true) {
      if (at_ >= text_.size()) bad("Unterminated string starting at", start);
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return made;
      }
      if (static_cast<unsigned char>(c) < 0x20) bad("Invalid control character at", at_);
      if (c != '\\') {
        made += c;
        ++at_;
        continue;
      }
      escape(made, start);
    }
  }

  void escape(std::string& made, size_t start) {
    if (at_ + 1 >= text_.size()) bad("Unterminated string starting at", start);
    const char c = text_[at_ + 1];
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const size_t found = kLetters.find(c); found != kLetters.npos) {
      made += kMeant[found];
      at_ += 2;
      return;
    }
    if (c != 'u') bad("Invalid \\escape", at_);
    int code = hex4(at_ + 2);
    if (code < 0) bad("Invalid \\uXXXX escape", at_ + 1);
    at_ += 6;
    if (code >= 0xD800 && code < 0xDC00 && text_.compare(at_, 2, "\\u") == 0) {
      const int low = hex4(at_ + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at_ += 6;
      }
    }
    if (code >= 0xD800 && code < 0xE000 && halves_ == Halves::kFail) {
      char text[16];
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
      fail(std::string("it holds half of a surrogate pair (as ") + text +
           "), which is no character: a text was cut in the middle of one");
    }
    unicode::append_code_point(made, static_cast<char32_t>(code));
  }

  Value list() {
    ++at_;
    Values items;
    space();
    if (peek() == ']') {
      ++at_;
      return make_list({});
    }
    while (true) {
      items.push_back(any());
      space();
      if (peek() == ']') break;
      if (peek() != ',') bad("Expecting ',' delimiter", at_);
      ++at_;
    }
    ++at_;
    return make_list(std::move(items));
  }

  Value object() {
    ++at_;
    auto made = std::make_shared<Dict>();
    space();
    if (peek() == '}') {
      ++at_;
      return Value(Kind::kDict, std::move(made));
    }
    while (true) {
      space();
      if (peek() != '"') bad("Expecting property name enclosed in double quotes", at_);
      const Value key(string());
      space();
      if (peek() != ':') bad("Expecting ':' delimiter", at_);
      ++at_;
      made->set(key, any());
      space();
      if (peek() == '}') break;
      if (peek() != ',') bad("Expecting ',' delimiter", at_);
      ++at_;
    }
    ++at_;
    return Value(Kind::kDict, std::move(made));
  }

  std::string_view text_;
  Halves halves_;
  size_t at_ = 0;
  int depth_ = 0;
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

Value from_json(std::string_view text, Halves halves) { return Reader(text, halves).all(); }

}  // namespace wherry::json
