// The parts of a streamed output: text, reasoning and tool calls. A message's text is the
// concatenation of all text parts, and likewise for reasoning.
#ifndef WHERRY_APP_TOOLS_OUTPUT_H_
#define WHERRY_APP_TOOLS_OUTPUT_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/tools/scanner.h"

namespace wherry::app {

// A piece of the output. A call consists of one kCallBegin, any number of kCallArguments and one
// kCallEnd. The concatenated texts of kCallArguments are a JSON object as the model wrote it. Calls
// have the indexes 0, 1, ... and do not overlap.
struct Part {
  enum class Kind { kText, kReasoning, kCallBegin, kCallArguments, kCallEnd };
  Kind kind;
  std::string text{};        // content of text, reasoning and arguments
  size_t index = 0;          // index of the call
  std::string id{}, name{};  // id of the call, name of the tool; for kCallBegin
  bool complete = true;      // for kCallEnd: false if the output ended within the arguments
  bool custom = false;       // whether the call is of a custom tool, and the arguments its input
};

// Appends a part, or merges it into the last part of the same kind.
void append(std::vector<Part>& parts, Part part);

// Collects the parts that the readers find, as far as the Scanner says that they count. It removes
// white space around calls and reasoning, which belongs to the format, except where it separates
// text before a call from text after it.
class Output {
 public:
  using Id = std::function<std::string()>;

  // s: the readers' scanner, which must outlive this object. id: returns an id for a call that has
  // none. most: the maximum number of calls.
  Output(Scanner& s, Id id, std::optional<size_t> most) : s_(s), id_(std::move(id)), most_(most) {}

  void text(std::string_view text);  // adds text to the content or the reasoning
  void think();                      // begins the reasoning
  void speak();                      // ends the reasoning
  // Begins a call, and ends the reasoning. The attempts that are running have succeeded.
  void begin(const std::string& name, const std::string& id = "");
  void arguments(std::string_view text);  // adds JSON to the call's arguments
  void end(bool complete = true);         // ends the call
  void finish();                          // ends the output, after the readers
  std::vector<Part> take() { return std::exchange(parts_, {}); }  // returns the new parts

  // Whether the maximum number of calls is reached and the last call is complete.
  bool full() const { return most_ && calls_ >= *most_ && !open_; }
  // The opposite of full(), for readers: the answer is the same when they run again.
  bool takes_more() { return s_.remember(!full()); }
  bool thinks() const { return thinks_; }
  // The following functions return callbacks to text() and arguments(), which must not outlive this
  // object.
  Emit to_text() {
    return [this](std::string_view piece) { text(piece); };
  }
  Emit to_arguments() {
    return [this](std::string_view piece) { arguments(piece); };
  }

 private:
  void change(bool thinks);
  void close(bool complete);

  Scanner& s_;
  std::vector<Part> parts_;  // adjacent parts of the same kind are merged
  Id id_;
  std::optional<size_t> most_;
  std::string space_;   // trailing white space, which is emitted if more text follows
  std::string gap_;     // white space before a call, for the text after it
  bool said_ = false;   // whether content has been emitted since the reasoning
  bool fresh_ = false;  // whether nothing has been emitted since a call or the reasoning
  size_t calls_ = 0;
  bool open_ = false, thinks_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_OUTPUT_H_
