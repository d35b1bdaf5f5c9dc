// What an output is made of, as it streams: text, reasoning and calls of tools. Joined in order,
// the parts of one kind are the message.
#ifndef WHERRY_ENGINE_APP_TOOLS_OUTPUT_H_
#define WHERRY_ENGINE_APP_TOOLS_OUTPUT_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::app {

// A call is one kCallBegin, any number of kCallArguments, whose texts joined are a JSON object as
// the model wrote it, and one kCallEnd. Calls have indexes 0, 1, ... and do not overlap.
struct Part {
  enum class Kind { kText, kReasoning, kCallBegin, kCallArguments, kCallEnd };
  Kind kind;
  std::string text{};  // of text, reasoning and arguments
  size_t index = 0;    // of a call
  std::string id{}, name{};
  bool whole = true;  // of kCallEnd: false if the output ended amid the arguments
};

// Appends a part; one that continues the last is joined with it.
void append(std::vector<Part>& parts, Part part);

// Where readers put what they find. White space before and after calls, and around reasoning,
// belongs to the format: it is left out, but for what keeps the words before a call from those
// after it.
class Output {
 public:
  using Id = std::function<std::string(size_t call)>;

  // id: of a call that brings none; most: calls that are wanted, more are not begun.
  Output(Id id, std::optional<size_t> most) : id_(std::move(id)), most_(most) {}

  void text(std::string_view text);  // some of what the user reads, or of the reasoning
  void think();                      // reasoning begins
  void speak();                      // reasoning has ended
  void begin(const std::string& name, const std::string& id = "");  // a call begins, reasoning ends
  void arguments(std::string_view text);                            // some of its arguments, JSON
  void end(bool whole = true);                                      // it ends
  void finish();                                                    // the text has ended

  bool full() const { return most_ && calls_ >= *most_ && !open_; }  // no more calls are wanted
  bool thinks() const { return thinks_; }
  // The two as functions, which must not outlive this.
  std::function<void(std::string_view)> to_text() {
    return [this](std::string_view piece) { text(piece); };
  }
  std::function<void(std::string_view)> to_arguments() {
    return [this](std::string_view piece) { arguments(piece); };
  }

  std::vector<Part> parts;  // what was found, joined

 private:
  void change(bool thinks);

  Id id_;
  std::optional<size_t> most_;
  std::string space_;   // that follows the text so far; kept if more text follows
  std::string gap_;     // space before or between calls
  bool said_ = false;   // text has been written since reasoning
  bool fresh_ = false;  // nothing has been written since a call, or since reasoning
  size_t calls_ = 0;
  bool open_ = false, thinks_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_OUTPUT_H_
