// Incremental top-down parsing of a text that arrives in pieces.
//
// Readers are plain functions that call the Scanner. If a reader needs text that has not arrived,
// the Scanner throws `Wait`. When more text has arrived, the reader runs again from the last
// position that OutputParser saved. Its results depend on the text alone, so the second run emits
// the same parts as the first, and then more.
#ifndef WHERRY_APP_TOOLS_SCANNER_H_
#define WHERRY_APP_TOOLS_SCANNER_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::app {

struct Wait {};  // thrown if more text has to arrive first

using Emit = std::function<void(std::string_view)>;
using CharSet = bool (*)(char32_t code);

constexpr char32_t kNoChar = 0xFFFFFFFF;  // value of next() at the end of the text
constexpr size_t kMostMatched = 512;      // maximum look-ahead, characters

class Scanner {
 public:
  std::string text;    // text that has arrived and may have to be parsed again
  size_t at = 0;       // byte offset of the next character
  bool ended = false;  // whether no more text will arrive
  // Whether parsing may resume at `at` after a Wait, without repeating what the reader has emitted.
  bool resumable = false;

  void feed(std::string_view piece);
  [[nodiscard]] std::string_view rest() const { return std::string_view(text).substr(at); }

  char32_t next();                 // returns the next character without consuming it
  std::string take(size_t chars);  // consumes characters; fewer at the end of the text
  char32_t space();  // skips white space and returns the next character without consuming it
  bool accept(std::string_view literal);  // consumes a literal if it is next
  bool comes(std::string_view literal);   // like accept(), without consuming it
  // Consumes the first of `literals` that is next and returns its index; nothing if none is.
  std::optional<size_t> accept_one(const std::vector<std::string>& literals);
  // Emits the text before the first occurrence of any of `literals`, consumes that literal and
  // returns its index; nothing if the text ends first. If several literals begin at one position,
  // the longest wins.
  std::optional<size_t> until(const std::vector<std::string>& literals, const Emit& emit);
  // Consumes and returns one character of the set `first` and further characters of the set `rest`,
  // at most min(most, longest) in total; "" if the next character is not in `first`. It waits for
  // the character after them, unless `most` characters match.
  std::string match(CharSet first, CharSet rest, size_t most = kMostMatched,
                    size_t longest = std::string::npos);
  std::string match(CharSet set, size_t most = kMostMatched) { return match(set, set, most); }

  // Runs a reader and returns its result; if the reader returns false, restores the position.
  template <typename Reader>
  bool attempt(Reader reader) {
    const size_t start = at;
    const bool found = reader();
    if (!found) at = start;
    return found;
  }

 private:
  void more() const;  // throws Wait unless `ended`
  bool may_grow(size_t start, size_t which, const std::vector<std::string>& literals) const;
  size_t safe(const std::vector<std::string>& literals) const;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_SCANNER_H_
