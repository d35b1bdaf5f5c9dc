// The kinds of formats; tool_families.json selects one for each family and sets its texts.
#ifndef WHERRY_APP_TOOLS_FORMATS_FORMATS_H_
#define WHERRY_APP_TOOLS_FORMATS_FORMATS_H_

#include <string>

#include "app/tools/call_object.h"
#include "app/tools/format.h"

namespace wherry::app {

// JSON objects, or lists of them, after a mark: Hermes, Qwen, Granite, Phi, Cohere, Nemotron.
// `begin` {call} `end`, or `begin` [{call}, ...] `end`.
struct Tagged : Format {
  Texts begin;          // the first one is written, all are read
  std::string end;      // "" for none
  bool listed = false;  // whether several calls form one list; else each has its own mark
  CallObject form;
  std::string head = "{\"name\": \"", middle = "\", \"arguments\": ";  // parts of the object
  std::string space;                                                   // between mark and object
  Texts left_out;  // removed everywhere, see silent

  Texts begins() const override { return begin; }
  Texts silent() const override { return left_out; }
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
};

// Llama 3.1 to 3.3, and models of unknown families: JSON objects, or lists of them, at the
// beginning or after a mark. Calls at the beginning count only if they name a tool of the request.
struct Bare : Format {
  Texts begin;
  std::string middle = "\", \"parameters\": ";  // between a name and its arguments
  // Pairs of texts around calls without a mark, such as code fences; the reader removes them.
  std::vector<std::pair<std::string, std::string>> fences;
  Texts between;  // see amid

  Texts begins() const override { return begin; }
  Texts markers() const override { return begin; }
  std::string example() const override;
  bool bare() const override { return true; }
  Texts amid() const override { return between; }
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
  std::string forced(Rules& rules, const CallRules& calls, bool several) const override;
  std::string free(Rules& rules, const CallRules& calls, bool several) const override;
};

// A header with the tool's name, then arguments as JSON: DeepSeek, Kimi, Mistral, Functionary.
// `section`? (`begin` `before`? name `middle` arguments `end`)+ `section_end`?
struct Headed : Format {
  std::string begin;      // begins one call
  Texts middle;           // alternatives; the first one is written
  std::string before;     // optional text before the name
  std::string tag;        // separates the name from an id or a number
  bool whole_id = false;  // whether the id is the whole header rather than the text after the tag
  Texts end;              // ends one call; the first one is written
  std::string section, section_end;  // around all calls; "" for none
  std::string between;               // between two calls

  Texts begins() const override { return not_empty({section, begin}); }
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool call(Scanner& s, Output& out) const;
  void arguments(Scanner& s, Output& out) const;
};

// Mistral's two formats: `[TOOL_CALLS] [{call}, ...]`, and since 2025
// `[TOOL_CALLS]name[ARGS]{...}`. The reader accepts both.
struct Mistral : Format {
  bool named = false;  // whether the example shows the newer one
  Tagged list;
  Headed headed;

  Mistral();
  Texts begins() const override { return list.begin; }
  Texts markers() const override { return {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}; }
  std::string example() const override { return named ? headed.example() : list.example(); }
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
};

// Calls in angle brackets, an element for each argument: Qwen3-Coder, GLM, MiniMax, DeepSeek V3.2.
// (`outer` (`call` name `named` (`key` key `keyed` value `ended`)* `call_end`)+ `outer_end`)
struct Markup : Format {
  std::string outer, outer_end;  // around calls
  // Marks of one call; `call` is "" if the name is in the outer element.
  std::string call = "<function=", named = ">", call_end = "</function>";
  std::string key = "<parameter=";     // precedes an argument's name
  Texts keyed = {">"};                 // follows it; white space between these texts is allowed
  std::string ended = "</parameter>";  // follows its value
  bool several = false;                // whether one outer element contains several calls
  std::string pad;                     // surrounds a value, and is removed
  std::string line = "\n";             // follows `outer`, `named` and `ended`
  bool typed = false;                  // an attribute in `keyed` says whether the value is a string
  Texts unclosed;  // end a value that lacks its end mark, unless a grammar enforces it
  // Names of an argument that contains an object of all arguments: it is unwrapped if it is the
  // only argument and the tool declares none of this name.
  Texts wrappers;

  Texts begins() const override { return not_empty({outer, call}); }  // outer may be missing
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool one(Scanner& s, Output& out, const Tools& tools) const;
  void arguments(Scanner& s, Output& out, const Tools& tools, const std::string& name) const;
  std::string behind_key(Scanner& s) const;
  bool wrapped(Scanner& s, Output& out, const Tools& tools, const std::string& name) const;
  bool value(Scanner& s, const Emit& emit, const Texts& kinds, const Texts& ends) const;
  std::string elements(Rules& rules, const CallRule& call) const;
};

// Gemma's: `begin` call:name{key:value,...} `end`; strings are between two `quote`.
struct Braces : Format {
  std::string begin, end, quote;

  Texts begins() const override { return {begin}; }
  Texts markers() const override { return {begin, end, quote}; }
  std::string example() const override { return begin + "call:NAME{KEY:VALUE}" + end; }
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool arguments(Scanner& s, Output& out) const;
  std::string written_members(Rules& rules, const CallRule& call) const;
  std::string written_value(Rules& rules, const Value& schema, const CallRule& call) const;
};

// Calls in Python syntax: Llama 3.2 and 4, Gemma 3, LFM2, Olmo 3.
// `begin` `[`? name(key=value, ...) (`,` or a line break) ... `]`? `end`
struct Pythonic : Format {
  Texts begin;  // empty: calls are at the beginning, in brackets
  std::string end;
  bool brackets = true;  // whether several calls form a list

  Texts begins() const override { return begin; }
  Texts markers() const override;
  std::string example() const override;
  bool bare() const override { return brackets; }  // such calls count if they name a tool
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
  std::string forced(Rules& rules, const CallRules& calls, bool several) const override;
  std::string free(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  static bool call(Scanner& s, Output& out, const Tools* known);
  static bool arguments(Scanner& s, Output& out);
  std::string written_arguments(Rules& rules, const CallRule& call) const;
};

// The format of gpt-oss: a response consists of messages in channels.
//
//   <|channel|>analysis<|message|>...<|end|>
//   <|start|>assistant<|channel|>final<|message|>...<|return|>
//
// `analysis` is reasoning, `final` text; a message with `to=functions.NAME` is a call, in any
// channel. A `commentary` message without a recipient is text for the user before calls.
struct Harmony : Format {
  Texts begins() const override { return {"<|channel|>"}; }
  Texts markers() const override;
  std::string example() const override { return ""; }
  bool calls(Scanner&, Output&, const Tools&, const std::string&) const override { return false; }
  bool read(Scanner& s, Output& out, const Tools& tools, int& state) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
  std::string forced(Rules& rules, const CallRules& calls, bool several) const override;
  std::string free(Rules& rules, const CallRules& calls, bool several) const override;
  std::string answer(Rules& rules, const std::string& body) const override;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_FORMATS_FORMATS_H_
