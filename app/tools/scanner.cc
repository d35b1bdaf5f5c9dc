#include "app/tools/scanner.h"

#include "app/value/code_points.h"

namespace wherry::app {

namespace {

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

}  // namespace

Marks::Marks(Texts texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_) begins_.set(static_cast<unsigned char>(text[0]));
}

// Returns the longest mark that `text` begins with, unless `text` may become a longer one.
Marks::Match Marks::at(std::string_view text, bool ended) const {
  Match match;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string& mark = texts_[i];
    if (text.size() < mark.size()) {
      if (!ended && begins_with(mark, text)) return {std::nullopt, true};
    } else if (begins_with(text, mark) &&
               (!match.mark || mark.size() > texts_[*match.mark].size())) {
      match.mark = i;
    }
  }
  return match;
}

size_t Marks::next(std::string_view text, size_t from, bool ended, Match& match) const {
  for (; from < text.size(); ++from) {
    if (!begins_[static_cast<unsigned char>(text[from])]) continue;
    match = at(text.substr(from), ended);
    if (match.mark || match.unsure) break;
  }
  return from;
}

void Scanner::feed(std::string_view piece) {
  text_.erase(0, keep_ - dropped_);
  dropped_ = keep_;
  text_ += piece;
}

void Scanner::begin_run() {
  repeating_ = std::exchange(waiting_, false);
  first_return_ = std::string::npos;
  step_ = at = 0;
}

// Leaves the journal at the question that was open.
void Scanner::go_on() {
  if (std::exchange(repeating_, false)) at = open_;
}

void Scanner::wait() {
  waiting_ = true;
  open_ = at;
  keep_ = std::min(first_return_, at);
}

// Returns whether a literal is next; nothing if more text has to arrive to know it.
std::optional<bool> Scanner::begins(std::string_view literal) const {
  const std::string_view there = rest().substr(0, literal.size());
  if (!begins_with(literal, there)) return false;
  if (there.size() == literal.size()) return true;
  return ended_ ? std::optional(false) : std::nullopt;
}

std::optional<char32_t> Scanner::following() const {
  size_t end = at - dropped_;
  if (end < text_.size()) return unicode::next_code_point(text_, end);
  return ended_ ? std::optional(kNoChar) : std::nullopt;
}

char32_t Scanner::next() {
  return answer(kNoChar, [this] { return following(); });
}

std::string Scanner::take(size_t chars) {
  return answer(std::string(), [&]() -> std::optional<std::string> {
    const std::string_view left = rest();
    size_t size = 0, count = 0;
    for (; count < chars && size < left.size(); ++count) unicode::next_code_point(left, size);
    if (count < chars && !ended_) return std::nullopt;
    at += size;
    return std::string(left.substr(0, size));
  });
}

char32_t Scanner::space() {
  return answer(kNoChar, [this] {
    const std::string_view left = rest();
    size_t size = 0;
    for (size_t end = 0; end < left.size(); size = end) {
      if (!unicode::is_space(unicode::next_code_point(left, end))) break;
    }
    at += size;
    return following();
  });
}

bool Scanner::accept(std::string_view literal) {
  return answer(false, [&] {
    const std::optional<bool> match = begins(literal);
    if (match.value_or(false)) at += literal.size();
    return match;
  });
}

bool Scanner::comes(std::string_view literal) {
  return answer(false, [&] { return begins(literal); });
}

std::optional<size_t> Scanner::accept_one(const Texts& literals) {
  for (size_t i = 0; i < literals.size(); ++i) {
    if (accept(literals[i])) return i;
  }
  return std::nullopt;
}

std::optional<size_t> Scanner::until(const Marks& marks, const Emit& emit) {
  using Index = std::optional<size_t>;
  return answer(Index(), [&]() -> std::optional<Index> {
    const std::string_view left = rest();
    Marks::Match match;
    const size_t size = marks.next(left, 0, ended_, match);
    at += size;
    if (match.mark) at += marks[*match.mark].size();
    emit(left.substr(0, size));
    if (!match.mark && !ended_) return std::nullopt;
    return match.mark;
  });
}

char Scanner::until_any(const std::string& chars, const Emit& emit) {
  return answer('\0', [&]() -> std::optional<char> {
    const std::string_view left = rest();
    const size_t size = std::min(left.find_first_of(chars), left.size());
    const bool matched = size < left.size();
    at += size + matched;
    emit(left.substr(0, size));
    if (!matched && !ended_) return std::nullopt;
    return matched ? left[size] : '\0';
  });
}

std::string Scanner::match(CharSet first, CharSet rest_of, size_t most, size_t longest) {
  return answer(std::string(), [&]() -> std::optional<std::string> {
    const std::string_view left = rest();
    size_t size = 0, count = 0;
    while (size < left.size() && count < std::min(most, longest)) {
      size_t end = size;
      const char32_t code = unicode::next_code_point(left, end);
      if (!(count == 0 ? first : rest_of)(code)) break;
      size = end;
      ++count;
    }
    if (size == left.size() && count < most && !ended_) return std::nullopt;
    at += size;
    return std::string(left.substr(0, size));
  });
}

bool Scanner::ends_within(const Texts& literals) {
  return answer(false, [&] {
    const std::string_view left = rest();
    const bool within =
        ended_ && std::any_of(literals.begin(), literals.end(), [&](const std::string& literal) {
          return begins_with(literal, left);
        });
    if (within) at += left.size();
    return std::optional(within);
  });
}

}  // namespace wherry::app
