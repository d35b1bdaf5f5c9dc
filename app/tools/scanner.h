// Incremental top-down parsing of a text that arrives in pieces.
//
// A reader is plain code that calls the Scanner. If it needs text that has not arrived, the Scanner
// throws `Wait`; when there is more text, the reader runs again from the last position that
// OutputParser saved. Its results depend on the text alone, so the second run begins like the
// first.
#ifndef WHERRY_APP_TOOLS_SCANNER_H_
#define WHERRY_APP_TOOLS_SCANNER_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::app {

struct Wait {};  // thrown to get more text

using Emit = std::function<void(std::string_view)>;
using CharSet = bool (*)(char32_t code);

constexpr char32_t kNoChar = 0xFFFFFFFF;  // the end of the text
constexpr size_t kMostMatched = 512;      // limit of look-ahead in characters

class Scanner {
 public:
  std::string text;  // text that has arrived and may be parsed again
  size_t at = 0;     // byte offset of the next character
  bool ended = false;
  // Whether a reader may resume at `at` after a Wait, keeping what it has emitted so far.
  bool resumable = false;

  void feed(std::string_view piece);
  [[nodiscard]] std::string_view rest() const { return std::string_view(text).substr(at); }

  char32_t next();                 // returns the next character without consuming it
  std::string take(size_t chars);  // fewer at the end of the text
  char32_t space();  // skips white space and returns the next character without consuming it
  bool accept(std::string_view literal);  // consumes the literal if it is next
  bool comes(std::string_view literal);   // whether the literal is next; does not consume it
  // Consumes the first of these literals that is next.
  std::optional<size_t> accept_one(const std::vector<std::string>& literals);
  // Emits text up to the first of these literals, and consumes the literal; returns its index,
  // nothing at the end. The longest wins if several begin at one position.
  std::optional<size_t> until(const std::vector<std::string>& literals, const Emit& emit);
  // Consumes a character of `first` and at most `most` of `rest` after it, once the character after
  // them has arrived. "" if there is none.
  std::string match(CharSet first, CharSet rest, size_t most = kMostMatched,
                    size_t longest = std::string::npos);
  std::string match(CharSet set, size_t most = kMostMatched) { return match(set, set, most); }

  // Runs a reader; consumes nothing if the reader fails.
  template <typename Reader>
  bool attempt(Reader reader) {
    const size_t start = at;
    const bool found = reader();
    if (!found) at = start;
    return found;
  }

 private:
  void more() const;  // throws Wait unless the text has ended
  bool may_grow(size_t start, size_t which, const std::vector<std::string>& literals) const;
  size_t safe(const std::vector<std::string>& literals) const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_SCANNER_H_
