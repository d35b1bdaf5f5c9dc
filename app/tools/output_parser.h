// The parser of one choice's output, which separates reasoning, text and tool calls.
#ifndef WHERRY_APP_TOOLS_OUTPUT_PARSER_H_
#define WHERRY_APP_TOOLS_OUTPUT_PARSER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

// The parameters of an OutputParser.
struct Reading {
  const Family* family = nullptr;    // family whose format calls have; null: no calls
  Tools tools;                       // tools of the request
  std::optional<Thoughts> thoughts;  // marks around reasoning; nothing: no reasoning
  bool opened = false;               // whether the prompt ends with the opening mark
  std::optional<size_t> most;        // maximum number of calls; nothing: unlimited
};

// Parses a text that arrives in pieces. The parts, once merged, do not depend on how the text is
// split into pieces.
//
// An incomplete call is parsed again from its beginning with each piece, so its cost is quadratic
// in its length: 0.1 ms per token at 32 KB of arguments. Text and reasoning cost linear time.
class OutputParser {
 public:
  explicit OutputParser(const Reading& reading);  // `reading` must outlive the parser
  OutputParser(const OutputParser&) = delete;
  OutputParser& operator=(const OutputParser&) = delete;

  // Returns the new parts that a piece of text results in.
  std::vector<Part> push(std::string_view text);
  std::vector<Part> finish();  // returns the remaining parts at the end of the text
  // Whether the text parsed last is reasoning, so that further text probably is, too.
  bool reasoning() const { return now_.out.thinks(); }
  bool done() const { return now_.out.full(); }  // the maximum number of calls is reached

 private:
  enum class Stage { kBegins, kThinks, kFormat, kRest, kEnd };
  struct Place {  // a state of the parser
    Output out;
    Stage stage;
    size_t at = 0;
    int state = 0;  // state of Format::read
  };

  std::vector<Part> go();
  void step();
  void begin_thoughts();
  void think();
  Stage after_thoughts() const { return reading_.family ? Stage::kFormat : Stage::kRest; }
  void give();
  void keep();

  const Reading& reading_;
  Scanner s_;
  std::vector<std::string> ids_;  // ids of the calls so far, so that calls parsed again keep theirs
  Place sure_, now_;              // state where parsing resumes, and state where it stopped
  std::vector<Part> made_;        // new parts, for `push` to return
  // Number of parts after sure_ that were returned, and the length of the last one's returned text.
  size_t given_ = 0, given_text_ = 0;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_OUTPUT_PARSER_H_
