// The parser of one choice: separates reasoning, text and calls.
#ifndef WHERRY_APP_TOOLS_OUTPUT_PARSER_H_
#define WHERRY_APP_TOOLS_OUTPUT_PARSER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

// The properties of an output that its parser needs.
struct Reading {
  const Family* family = nullptr;    // the family of the call format; null: no calls
  Tools tools;                       // the callable tools
  std::optional<Thoughts> thoughts;  // marks of reasoning; nothing: no reasoning
  bool opened = false;               // the prompt already contains the opening mark
  std::optional<size_t> most;        // maximum number of calls; nothing: no limit
};

// The merged parts do not depend on how the text is split into pieces.
//
// An incomplete call is parsed again from its beginning with each piece, so its cost is quadratic
// in its length: 0.1 ms per token at 32 KB of arguments. Text and reasoning cost linear time.
class OutputParser {
 public:
  explicit OutputParser(const Reading& reading);  // must outlive the parser
  OutputParser(const OutputParser&) = delete;
  OutputParser& operator=(const OutputParser&) = delete;

  std::vector<Part> push(std::string_view text);
  std::vector<Part> finish();  // the parts that were held back, at the end of the text
  // Whether the next text is reasoning, as far as is known.
  bool reasoning() const { return now_.out.thinks(); }
  bool done() const { return now_.out.full(); }  // the maximum number of calls is complete

 private:
  enum class Stage { kBegins, kThinks, kFormat, kRest, kEnd };
  struct Place {  // a position of the parser
    Output out;
    Stage stage;
    size_t at = 0;
    int state = 0;  // the format's state
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
  std::vector<std::string> ids_;  // ids of the calls
  Place sure_, now_;              // where parsing resumes, and where it stopped
  std::vector<Part> made_;        // parts that `push` has not returned yet
  // Number of parts since sure_ that were returned, and the length of the last one's text.
  size_t given_ = 0, given_text_ = 0;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_OUTPUT_PARSER_H_
