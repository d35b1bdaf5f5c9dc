#include "app/tools/custom_calls.h"

#include <algorithm>

#include "app/value/code_points.h"

namespace wherry::app {

namespace {

constexpr size_t kUnit = 6;  // bytes of an escape \uXXXX

// Skips white space of JSON.
size_t skip_space(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t\n\r", at), text.size());
}

// Returns where the text of the input begins in the arguments; npos if they do not show it yet.
size_t begin_of_input(std::string_view text) {
  size_t at = 0;
  for (const std::string_view token : {"{", "\"input\"", ":", "\""}) {
    at = skip_space(text, at);
    if (text.substr(at, token.size()) != token) return std::string_view::npos;
    at += token.size();
  }
  return at;
}

// Returns the value of four hexadecimal digits; -1 for other text.
int hex(std::string_view text) {
  if (text.size() != 4) return -1;
  int result = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    result = result * 16 + digit;
  }
  return result;
}

bool is_high(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Returns the number of bytes of the escape that begins a text; 0 while it is incomplete. A high
// surrogate is complete with what follows it.
size_t escape_size(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] != 'u') return 2;
  if (text.size() < kUnit) return 0;
  if (!is_high(hex(text.substr(2, 4)))) return kUnit;
  const std::string_view next = text.substr(kUnit);
  if (next.empty() || (next[0] == '\\' && next.size() < 2)) return 0;
  if (next[0] != '\\' || next[1] != 'u') return kUnit;
  if (next.size() < kUnit) return 0;
  return is_low(hex(next.substr(2, 4))) ? 2 * kUnit : kUnit;
}

// Returns the text of a complete escape; one that JSON does not have stays as it is.
std::string decoded(std::string_view escape) {
  static constexpr std::string_view kNames = "\"\\/bfnrt", kTexts = "\"\\/\b\f\n\r\t";
  if (escape[1] != 'u') {
    const size_t at = kNames.find(escape[1]);
    return at == kNames.npos ? std::string(escape) : std::string(1, kTexts[at]);
  }
  int code = hex(escape.substr(2, 4));
  if (code < 0) return std::string(escape);
  if (escape.size() > kUnit) {
    code = 0x10000 + ((code - 0xD800) << 10) + (hex(escape.substr(kUnit + 2)) - 0xDC00);
  } else if (is_high(code) || is_low(code)) {
    code = 0xFFFD;
  }
  std::string result;
  unicode::append_code_point(result, static_cast<char32_t>(code));
  return result;
}

}  // namespace

std::string CustomInput::push(std::string_view text) {
  if (ended_) return "";
  pending_ += text;
  if (!begun_) {
    const size_t begin = begin_of_input(pending_);
    if (begin == std::string::npos) return "";
    begun_ = true;
    pending_.erase(0, begin);
  }
  std::string result;
  size_t at = 0;
  while (at < pending_.size() && pending_[at] != '"') {
    if (pending_[at] != '\\') {
      result += pending_[at++];
      continue;
    }
    const size_t size = escape_size(std::string_view(pending_).substr(at));
    if (size == 0) break;
    result += decoded(std::string_view(pending_).substr(at, size));
    at += size;
  }
  ended_ = at < pending_.size() && pending_[at] == '"';
  pending_.erase(0, at);
  return result;
}

std::string CustomInput::rest() const { return begun_ ? "" : pending_; }

std::vector<Part> CustomCalls::translated(std::vector<Part> parts) {
  using Kind = Part::Kind;
  std::vector<Part> result;
  const auto add = [&](size_t index, std::string text) {
    if (text.empty()) return;
    Part part{Kind::kCallArguments, std::move(text), index};
    part.custom = true;
    append(result, std::move(part));
  };
  for (Part& part : parts) {
    if (part.kind == Kind::kCallBegin &&
        std::find(names_.begin(), names_.end(), part.name) != names_.end()) {
      input_.emplace();
      part.custom = true;
    } else if (input_ && part.kind == Kind::kCallArguments) {
      add(part.index, input_->push(part.text));
      continue;
    } else if (input_ && part.kind == Kind::kCallEnd) {
      add(part.index, input_->rest());
      input_.reset();
    }
    append(result, std::move(part));
  }
  return result;
}

}  // namespace wherry::app
