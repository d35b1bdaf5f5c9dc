// Incremental top-down parsing of a text that arrives in pieces.
//
// A reader is a plain function that asks the Scanner about the text. If the answer depends on text
// that has not arrived, the Scanner answers as if the text had ended and ignores what the reader
// emits, so that the reader returns. When more text has arrived, the reader runs again. The Scanner
// then repeats its earlier answers from a journal, without looking at the text, and still ignores
// what the reader emits, until it comes to the question that was open. So each character is read
// once, and the parts do not depend on how the text is split.
//
// Both runs have to ask the same questions. Therefore a reader
// - begins each round of a loop with Rounds, which also shortens the journal,
// - collects text in an object that it gets from Scanner::kept,
// - learns from the Scanner, or from Output::takes_more, whatever changes between two runs.
#ifndef WHERRY_APP_TOOLS_SCANNER_H_
#define WHERRY_APP_TOOLS_SCANNER_H_

#include <algorithm>
#include <any>
#include <bitset>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::app {

using Texts = std::vector<std::string>;
using Emit = std::function<void(std::string_view)>;
using CharSet = bool (*)(char32_t code);

constexpr char32_t kNoChar = 0xFFFFFFFF;  // value of next() at the end of the text
constexpr size_t kMostMatched = 512;      // maximum look-ahead, characters

// Literals that are searched for together.
class Marks {
 public:
  explicit Marks(Texts texts);  // none of them is empty
  const std::string& operator[](size_t i) const { return texts_[i]; }

  // What begins at a position: the mark with an index, or a text that may become a longer mark.
  struct Match {
    std::optional<size_t> mark;
    bool unsure = false;
  };
  // Returns the first position at or after `from` where a mark begins, or may begin unless `ended`;
  // text.size() if there is none. Of several marks at one position, the longest wins.
  size_t next(std::string_view text, size_t from, bool ended, Match& match) const;

 private:
  Match at(std::string_view text, bool ended) const;

  Texts texts_;
  std::bitset<256> begins_;  // first bytes of the marks
};

class Scanner {
 public:
  size_t at = 0;  // position of the next character, in bytes from the beginning of the output

  void feed(std::string_view piece);
  void end() { ended_ = true; }  // no more text will arrive
  void begin_run();              // to be called before the reader runs
  // Whether the reader has returned only because more text has to arrive.
  bool waiting() const { return waiting_; }
  // Whether what a reader emits counts: it does not if an earlier run emitted it, or if the Scanner
  // pretends that the text has ended.
  bool live() const { return !waiting_ && !repeating_; }

  char32_t next();                 // returns the next character without consuming it
  std::string take(size_t chars);  // consumes characters; fewer at the end of the text
  char32_t space();  // skips white space and returns the next character without consuming it
  bool accept(std::string_view literal);  // consumes a literal if it is next
  bool comes(std::string_view literal);   // like accept(), without consuming it
  // Consumes the first of `literals` that is next and returns its index; nothing if none is.
  std::optional<size_t> accept_one(const Texts& literals);
  // Emits the text before the first of the marks, consumes that mark and returns its index; nothing
  // if the text ends first.
  std::optional<size_t> until(const Marks& marks, const Emit& emit);
  // The same for single ASCII characters; returns the character, or '\0'.
  char until_any(const std::string& chars, const Emit& emit);
  // Consumes and returns one character of the set `first` and further characters of the set `rest`,
  // at most min(most, longest) in total; "" if the next character is not in `first`. It waits for
  // the character after them, unless `most` characters match.
  std::string match(CharSet first, CharSet rest, size_t most = kMostMatched,
                    size_t longest = std::string::npos);
  std::string match(CharSet set, size_t most = kMostMatched) { return match(set, set, most); }
  // Consumes the rest of the text if the text has ended within one of `literals`; returns whether
  // it has.
  bool ends_within(const Texts& literals);

  // Returns the value of the first run, for what may change between runs.
  bool remember(bool value) {
    return answer(value, [&] { return std::optional(value); });
  }
  // Returns what `make` returned when the reader first came here. The object remains the same in
  // later runs, so a reader can collect text in it.
  template <typename Make>
  auto kept(Make make) {
    using Kept = std::shared_ptr<decltype(make())>;
    const auto result = [&] { return std::make_shared<decltype(make())>(make()); };
    return waiting_ ? result() : answer(Kept(), [&] { return std::optional<Kept>(result()); });
  }
  std::shared_ptr<std::string> kept_text() {
    return kept([] { return std::string(); });
  }
  // Returns a function that appends what a reader emits to such a text.
  Emit to(std::shared_ptr<std::string> text) {
    return [this, text = std::move(text)](std::string_view piece) {
      if (live()) *text += piece;
    };
  }

  // Runs a reader and returns its result; if the reader returns false, restores the position.
  template <typename Reader>
  bool attempt(Reader reader) {
    const size_t start = at;
    const bool matched = pinned(reader);
    if (!matched) at = start;
    return matched;
  }
  // The same, but always restores the position.
  template <typename Reader>
  bool look(Reader reader) {
    const size_t start = at;
    const bool matched = pinned(reader);
    at = start;
    return matched;
  }
  // Declares that the attempts that are running will succeed, so that read text can be dropped.
  void release() { first_return_ = std::string::npos; }

 private:
  friend class Rounds;
  struct Step {
    size_t at;                // position after the answer
    std::any answer;          // for Rounds, the state of the loop
    size_t first_return = 0;  // for Rounds, held_
  };

  template <typename Reader>
  bool pinned(Reader reader) {
    const size_t before = first_return_;
    first_return_ = std::min(first_return_, at);
    const bool matched = reader();
    if (first_return_ != std::string::npos) first_return_ = before;  // released attempts stay so
    return matched;
  }

  // Answers a question from the journal or by `attempt`, which returns nothing if more text has to
  // arrive. Then, and until the next run, all answers are the `nothing` of their questions.
  template <typename Answer, typename Attempt>
  Answer answer(Answer nothing, Attempt attempt) {
    if (waiting_) return nothing;
    if (step_ < journal_.size()) {
      const Step& step = journal_[step_++];
      at = step.at;
      return std::any_cast<const Answer&>(step.answer);
    }
    go_on();
    std::optional<Answer> match = attempt();
    if (!match) {
      wait();
      return nothing;
    }
    journal_.push_back({at, *match});
    ++step_;
    return *std::move(match);
  }
  void go_on();
  void wait();

  [[nodiscard]] std::string_view rest() const {
    return std::string_view(text_).substr(at - dropped_);
  }
  std::optional<bool> begins(std::string_view literal) const;
  std::optional<char32_t> following() const;

  std::string text_;    // text from the position dropped_ on
  size_t dropped_ = 0;  // length of the text that is not needed any more
  bool ended_ = false;  // whether no more text will arrive
  bool waiting_ = false;
  bool repeating_ = false;                   // whether answers come from the journal
  size_t open_ = 0;                          // position at the open question
  size_t keep_ = 0;                          // position from which on the text is needed
  size_t first_return_ = std::string::npos;  // first position to which an attempt may return
  std::vector<Step> journal_;
  size_t step_ = 0;  // index of the next question in the journal
};

// A loop of a reader: while (rounds.next()) {...}. A later run repeats only the last round.
class Rounds {
 public:
  explicit Rounds(Scanner& s) : s_(s) {}
  // Begins a round; returns false if the Scanner waits. state: what the reader keeps from one round
  // to the next; a repeated round begins with the state that it began with at first.
  template <typename State>
  bool next(State& state) {
    if (s_.waiting_) return false;
    if (step_ == kNone) {
      step_ = s_.step_++;
      if (step_ < s_.journal_.size()) {
        const Scanner::Step& step = s_.journal_[step_];
        s_.at = step.at;
        s_.first_return_ = step.first_return;
        state = std::any_cast<const State&>(step.answer);
        return true;
      }
    }
    s_.journal_.resize(step_);
    s_.journal_.push_back({s_.at, state, s_.first_return_});
    s_.step_ = step_ + 1;
    return true;
  }
  bool next() {
    bool none = false;
    return next(none);
  }

 private:
  static constexpr size_t kNone = std::string::npos;

  Scanner& s_;
  size_t step_ = kNone;  // index of the loop in the journal
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_SCANNER_H_
