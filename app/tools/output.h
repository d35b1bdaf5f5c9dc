// The parts of a streamed output: text, reasoning and tool calls. The concatenated parts of one
// kind form the message.
#ifndef WHERRY_APP_TOOLS_OUTPUT_H_
#define WHERRY_APP_TOOLS_OUTPUT_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::app {

// A call is one kCallBegin, any number of kCallArguments, whose concatenated texts are a JSON
// object as the model wrote it, and one kCallEnd. Calls have indexes 0, 1, ... and do not overlap.
struct Part {
  enum class Kind { kText, kReasoning, kCallBegin, kCallArguments, kCallEnd };
  Kind kind;
  std::string text{};  // for text, reasoning and arguments
  size_t index = 0;    // of the call
  std::string id{}, name{};
  bool whole = true;  // for kCallEnd: false if the output ended within the arguments
};

// Appends a part, or merges it into the last part of the same kind.
void append(std::vector<Part>& parts, Part part);

// Collects what the readers find. White space around calls and reasoning belongs to the format and
// is removed, except where it separates the words before a call from those after it.
class Output {
 public:
  using Id = std::function<std::string(size_t call)>;

  // id: creates the id of a call without one; most: the maximum number of calls.
  Output(Id id, std::optional<size_t> most) : id_(std::move(id)), most_(most) {}

  void text(std::string_view text);  // adds text for the user, or reasoning
  void think();                      // begins reasoning
  void speak();                      // ends reasoning
  void begin(const std::string& name, const std::string& id = "");  // ends reasoning
  void arguments(std::string_view text);  // adds JSON to the call's arguments
  void end(bool whole = true);            // ends the call
  void finish();                          // ends the output

  bool full() const { return most_ && calls_ >= *most_ && !open_; }  // all calls are complete
  bool thinks() const { return thinks_; }
  // Callbacks for text() and arguments(); they must not outlive this object.
  std::function<void(std::string_view)> to_text() {
    return [this](std::string_view piece) { text(piece); };
  }
  std::function<void(std::string_view)> to_arguments() {
    return [this](std::string_view piece) { arguments(piece); };
  }

  std::vector<Part> parts;  // the merged parts

 private:
  void change(bool thinks);

  Id id_;
  std::optional<size_t> most_;
  std::string space_;   // trailing white space; emitted if more text follows
  std::string gap_;     // white space before or between calls
  bool said_ = false;   // text was written since the reasoning
  bool fresh_ = false;  // nothing was written since a call or the reasoning
  size_t calls_ = 0;
  bool open_ = false, thinks_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_OUTPUT_H_
