#include "app/grammar/endless.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace wherry::app {

namespace {

constexpr int kDeepestGroup = 100;  // upper bound on nested groups
// Upper bound on the times that a grammar is read; rules that end later count as rules that end.
constexpr int kMostReadings = 100;

bool is_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-';
}

// Reads a grammar as often as rules are found that end.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), gbnf_(text.find("::=") != text.npos) {}

  std::string endless() {
    bool more = true;
    for (int n = 0; more && n < kMostReadings; ++n) {
      more = false;
      at_ = 0;
      first_.clear();
      while (next_rule()) {
        const std::string name = std::exchange(name_, "");
        if (first_.empty() || name == (gbnf_ ? "root" : "start")) first_ = name;
        if (alternatives(0) && !ends_[name]) more = ends_[name] = true;
      }
    }
    return first_.empty() || more || ends_[first_] ? "" : first_;
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  bool accept(std::string_view mark) {
    if (text_.compare(at_, mark.size(), mark) != 0) return false;
    at_ += mark.size();
    return true;
  }

  // Passes a character, if there is one.
  void pass() { at_ = std::min(at_ + 1, text_.size()); }

  void skip_line() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void space() {
    for (; !done(); ++at_) {
      const char c = text_[at_];
      if (c == '#' || (!gbnf_ && text_.compare(at_, 2, "//") == 0)) {
        skip_line();
        if (done()) return;
      } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        return;
      }
    }
  }

  // Reads text up to an unescaped mark.
  void up_to(char mark) {
    for (; !done() && text_[at_] != mark; pass()) {
      if (text_[at_] == '\\') pass();
    }
    pass();
  }

  // Reads what stands between braces, as %json {...} has it.
  void braces() {
    int depth = 0;
    for (; !done(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        up_to('"');
        --at_;
      }
      if (done()) return;
      depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
      if (depth == 0) break;
    }
    pass();
  }

  std::string name() {
    const size_t from = at_;
    while (!done() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  // Whether a rule's head begins here; reads it into `name_`.
  bool head() {
    const size_t before = at_;
    if (!gbnf_ && (accept("?") || accept("!"))) {
    }
    std::string match = name();
    while (!done() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    if (!gbnf_ && accept("[")) up_to(']');
    if (!gbnf_ && accept(".")) name();
    while (!done() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    if (!match.empty() && accept(gbnf_ ? "::=" : ":")) {
      name_ = std::move(match);
      return true;
    }
    at_ = before;
    return false;
  }

  bool next_rule() {
    for (space(); !done(); space()) {
      if (!name_.empty() || head()) return true;
      skip_line();
    }
    return false;
  }

  // Reads alternatives; returns whether one of them ends.
  bool alternatives(int depth) {
    bool any = false;
    do {
      any = sequence(depth) || any;
    } while (accept("|"));
    return any;
  }

  bool sequence(int depth) {
    bool all = true;
    for (space(); !done(); space()) {
      const char c = text_[at_];
      if (c == '|' || c == ')' || (c == ']' && depth > 0)) break;
      if (depth == 0 && head()) break;  // the next rule begins
      bool ends = part(depth);
      const size_t before = at_;
      while (!done() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      if (accept("?") || accept("*")) {
        ends = true;
      } else if (!accept("+")) {
        at_ = before;
        if (!done() && text_[at_] == '{') {
          ends = ends || text_.compare(at_, 3, "{0,") == 0 || text_.compare(at_, 3, "{0}") == 0 ||
                 text_.compare(at_, 2, "{,") == 0;
          braces();
        } else if (accept("~")) {
          ends = true;
        }
      }
      all = all && ends;
    }
    return all;
  }

  bool part(int depth) {
    const char c = text_[at_];
    if (is_name(c)) return ends_of(name());
    ++at_;
    if (c == '"') {
      up_to('"');
    } else if (c == '/' && !gbnf_) {
      up_to('/');
    } else if (c == '<') {
      up_to('>');
    } else if (c == '[' && gbnf_) {
      up_to(']');
    } else if ((c == '(' || c == '[') && depth < kDeepestGroup) {
      const bool ends = alternatives(depth + 1);
      pass();
      return ends || c == '[';
    } else if (c == '%') {
      name();
      space();
      if (!done() && text_[at_] == '{') braces();
    }
    return true;
  }

  // Names without a rule are tokens, or errors of which the compiler tells.
  bool ends_of(const std::string& name) {
    const bool is_rule = known().count(name) > 0;
    return !is_rule || ends_[name];
  }

  const std::map<std::string, bool>& known() {
    if (!known_.empty() || looking_) return known_;
    looking_ = true;
    const size_t at = at_;
    const std::string kept = std::exchange(name_, "");
    for (at_ = 0; next_rule(); alternatives(0)) known_[std::exchange(name_, "")] = true;
    at_ = at;
    name_ = kept;
    looking_ = false;
    return known_;
  }

  const std::string_view text_;
  const bool gbnf_;
  size_t at_ = 0;
  bool looking_ = false;  // while the names of rules are collected
  std::string name_;      // of the rule whose head was read last
  std::string first_;
  std::map<std::string, bool> known_, ends_;
};

}  // namespace

std::string endless_rule(std::string_view grammar) { return Reader(grammar).endless(); }

}  // namespace wherry::app
