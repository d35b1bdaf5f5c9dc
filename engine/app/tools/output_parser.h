// The parser of one choice: its reasoning, its text, its calls.
#ifndef WHERRY_ENGINE_APP_TOOLS_OUTPUT_PARSER_H_
#define WHERRY_ENGINE_APP_TOOLS_OUTPUT_PARSER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/tools/families.h"
#include "app/tools/thoughts.h"

namespace wherry::app {

// What an output is looked through for.
struct Reading {
  const Family* family = nullptr;    // how calls are written; null: none are looked for
  Tools tools;                       // that may be called
  std::optional<Thoughts> thoughts;  // marks of reasoning; nothing: none is looked for
  bool opened = false;               // the prompt has opened the reasoning
  std::optional<size_t> most;        // calls that are wanted; nothing: all
};

// How a text is cut does not change its parts, joined.
//
// A call that has not ended is read again with each piece from its beginning on, so its cost is the
// square of its length: at 32 KB of arguments some 0.1 ms for a token. Text and reasoning are not.
class OutputParser {
 public:
  explicit OutputParser(const Reading& reading);  // which has to outlive this
  OutputParser(const OutputParser&) = delete;
  OutputParser& operator=(const OutputParser&) = delete;

  std::vector<Part> push(std::string_view text);
  std::vector<Part> finish();  // what was held back, at the end of the text
  // Whether what comes next is reasoning, as far as can be told.
  bool reasoning() const { return now_.out.thinks(); }
  bool done() const { return now_.out.full(); }  // what was asked for is there

 private:
  enum class Stage { kBegins, kThinks, kFormat, kRest, kEnd };
  struct Place {  // how far it was read
    Output out;
    Stage stage;
    size_t at = 0;
    int state = 0;  // of the format
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
  std::vector<std::string> ids_;  // of calls
  Place sure_, now_;              // where reading goes on; where it stopped
  std::vector<Part> made_;        // new ones
  // Parts since sure_ that were given out, and the length of the last one's text.
  size_t given_ = 0, given_text_ = 0;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_OUTPUT_PARSER_H_
