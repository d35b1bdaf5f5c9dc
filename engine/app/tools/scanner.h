// Reading a text that comes in pieces, from top to bottom.
//
// A reader is plain code that calls the Scanner. Where it needs text that has not come yet, `Wait`
// is thrown through it, and when there is more it reads again from the last place that OutputParser
// holds for sure: its answers depend on the text alone, so the second time they begin as the first.
#ifndef WHERRY_ENGINE_APP_TOOLS_SCANNER_H_
#define WHERRY_ENGINE_APP_TOOLS_SCANNER_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::app {

struct Wait {};  // more text is needed

using Emit = std::function<void(std::string_view)>;
using CharSet = bool (*)(char32_t code);

constexpr char32_t kNoChar = 0xFFFFFFFF;  // the text has ended
constexpr size_t kMostMatched = 512;      // characters that are looked at

class Scanner {
 public:
  std::string text;  // what has come and is still needed
  size_t at = 0;     // byte of the next character
  bool ended = false;
  // Whether reading may go on at `at` after a Wait, with what the reader has given out so far.
  bool resumable = false;

  void feed(std::string_view piece);
  [[nodiscard]] std::string_view rest() const { return std::string_view(text).substr(at); }

  char32_t next();                        // the next character, which is not taken
  std::string take(size_t chars);         // fewer at the end
  char32_t space();                       // skips white space; the character after it, not taken
  bool accept(std::string_view literal);  // takes it if it comes next
  bool comes(std::string_view literal);   // whether it comes next; not taken
  // Takes the first of these that comes next.
  std::optional<size_t> accept_one(const std::vector<std::string>& literals);
  // Hands out text up to the first of these, which is taken too: which one, nothing at the end. Of
  // several that begin at one place the longest is meant.
  std::optional<size_t> until(const std::vector<std::string>& literals, const Emit& emit);
  // Takes a character of `first` and those of `rest` behind it, when what follows is there; at most
  // `longest`. "" if none comes.
  std::string match(CharSet first, CharSet rest, size_t most = kMostMatched,
                    size_t longest = std::string::npos);
  std::string match(CharSet set, size_t most = kMostMatched) { return match(set, set, most); }

  // Reads; if that comes to nothing, nothing is taken.
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

#endif  // WHERRY_ENGINE_APP_TOOLS_SCANNER_H_
