// The parser of one choice's output, which separates reasoning, text and tool calls.
#ifndef WHERRY_APP_TOOLS_OUTPUT_PARSER_H_
#define WHERRY_APP_TOOLS_OUTPUT_PARSER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/tools/families.h"
#include "app/tools/output.h"
#include "app/tools/scanner.h"
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
class OutputParser {
 public:
  explicit OutputParser(const Reading& reading);  // `reading` must outlive the parser
  OutputParser(const OutputParser&) = delete;
  OutputParser& operator=(const OutputParser&) = delete;

  // Returns the new parts that a piece of text results in.
  std::vector<Part> push(std::string_view text);
  std::vector<Part> finish();  // returns the remaining parts at the end of the text
  // Whether the text parsed last is reasoning, so that further text probably is, too.
  bool reasoning() const { return out_.thinks(); }
  bool done() const { return out_.full(); }  // the maximum number of calls is reached

 private:
  void run();
  void read();
  void think();

  const Reading& reading_;
  Scanner s_;
  Output out_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_OUTPUT_PARSER_H_
