// What models write to themselves before they answer, between two marks.
#ifndef WHERRY_ENGINE_APP_CHAT_THOUGHTS_H_
#define WHERRY_ENGINE_APP_CHAT_THOUGHTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::app {

// The two marks. Templates of some models write the first one at the end of the prompt.
struct Thoughts {
  std::string begin, end;
  bool opened(std::string_view prompt) const;  // whether a prompt ends inside reasoning
};

// The marks that a template knows; nothing: its model does not think in marks.
std::optional<Thoughts> thoughts_of(std::string_view chat_template);

// A piece of an output.
struct Part {
  bool reasoning;
  std::string text;
};

// Tells the reasoning that an output begins with from its text. White space around reasoning
// belongs to the format, and is left out; how a text is cut does not change the parts, joined.
class ThoughtReader {
 public:
  // No thoughts: everything is text as it is.
  ThoughtReader(std::optional<Thoughts> thoughts, bool opened);

  std::vector<Part> push(std::string_view text);
  std::vector<Part> finish();  // what was held back, at the end of the text
  bool reasoning() const { return state_ == State::kThinks; }

 private:
  enum class State { kBegins, kThinks, kSpeaks };

  void read(bool ended);
  bool begin(bool ended);
  void write(std::string_view text);
  void enter(State state);

  std::optional<Thoughts> thoughts_;
  bool opened_;
  State state_ = State::kSpeaks;
  bool begun_ = true;         // whether the first mark has been looked for
  std::string held_, space_;  // text that is not decided; white space that may be the end
  bool fresh_ = false;
  std::vector<Part> made_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_THOUGHTS_H_
