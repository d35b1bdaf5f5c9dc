// The kinds of formats; families.cc says which family has which, and how its texts are.
#ifndef WHERRY_ENGINE_APP_TOOLS_FORMATS_FORMATS_H_
#define WHERRY_ENGINE_APP_TOOLS_FORMATS_FORMATS_H_

#include <string>

#include "app/tools/call_object.h"
#include "app/tools/format.h"

namespace wherry::app {

// JSON objects, or lists of them, after a mark: Hermes, Qwen, Granite, Phi, Cohere, Nemotron.
// `begin` {call} `end`, or `begin` [{call}, ...] `end`.
struct Tagged : Format {
  Texts begin;          // the first is the usual one
  std::string end;      // "" if there is none
  bool listed = false;  // whether several calls are one list; else each has its own mark
  CallObject form;
  std::string head = "{\"name\": \"", middle = "\", \"arguments\": ";  // of the object
  std::string space;                                                   // between mark and object
  Texts left_out;                                                      // see silent

  Texts begins() const override { return begin; }
  Texts silent() const override { return left_out; }
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
};

// Llama 3.1 to 3.3, and any model that nothing is known of: JSON objects, or lists of them, at the
// beginning or after a mark. Those at the beginning are calls if they name a tool of the request.
struct Bare : Format {
  Texts begin;
  std::string middle = "\", \"parameters\": ";  // between a name and its arguments
  // What may stand around those that no mark begins, and is no part of them.
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
  std::string begin;      // the mark of one call
  Texts middle;           // one of these; the first is the usual one
  std::string before;     // what may stand before the name
  std::string tag;        // between the name and an id or a number, if there is one
  bool whole_id = false;  // whether the id is all of the header, not what follows the tag
  Texts end;              // of one call; the first is the usual one
  std::string section, section_end;  // around all calls; "" if there is no such thing
  std::string between;               // two calls

  Texts begins() const override { return not_empty({section, begin}); }
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool call(Scanner& s, Output& out) const;
  void arguments(Scanner& s, Output& out) const;
};

// Mistral's two: `[TOOL_CALLS] [{call}, ...]`, and since 2025 `[TOOL_CALLS]name[ARGS]{...}`. Both
// are read.
struct Mistral : Format {
  bool named = false;  // which one its example is of
  Tagged list;
  Headed headed;

  explicit Mistral(bool named);
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
  // Marks of one call; `call` is "" where its name stands in the outer element.
  std::string call = "<function=", named = ">", call_end = "</function>";
  std::string key = "<parameter=";     // before an argument's name
  Texts keyed = {">"};                 // after it; white space may stand between these
  std::string ended = "</parameter>";  // after its value
  bool several = false;                // whether an outer element holds several calls
  std::string pad;                     // stands around a value, and is no part of it
  std::string line = "\n";             // stands after `outer`, `named` and `ended`
  bool typed = false;                  // an attribute of `keyed` says whether the value is a string
  Texts unclosed;  // what a value ends before that was not closed, unless a grammar sees to it
  // Names of an argument that may be an object of all arguments, where the tool has no argument of
  // this name and it is the only one.
  Texts wrappers;

  Texts begins() const override { return not_empty({outer, call}); }  // models forget the outer one
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

// Gemma's: `begin` call:name{key:value,...} `end`; strings stand between two `quote`.
struct Braces : Format {
  std::string begin, end, quote;

  Braces(std::string begin, std::string end, std::string quote)
      : begin(std::move(begin)), end(std::move(end)), quote(std::move(quote)) {}
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

// As Python writes calls: Llama 3.2 and 4, Gemma 3, LFM2, Olmo 3.
// `begin` `[`? name(key=value, ...) (`,` or a line break) ... `]`? `end`
struct Pythonic : Format {
  Texts begin;  // none: calls stand at the beginning, in brackets
  std::string end;
  bool brackets = true;  // whether several calls are a list

  Texts begins() const override { return begin; }
  Texts markers() const override;
  std::string example() const override;
  bool bare() const override { return brackets; }  // then calls count that name a tool
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
  std::string forced(Rules& rules, const CallRules& calls, bool several) const override;
  std::string free(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  static bool call(Scanner& s, Output& out, const Tools* known);
  static bool arguments(Scanner& s, Output& out);
  std::string written_arguments(Rules& rules, const CallRule& call) const;
};

// The format of gpt-oss: an answer is messages in channels.
//
//   <|channel|>analysis<|message|>...<|end|>
//   <|start|>assistant<|channel|>final<|message|>...<|return|>
//
// `analysis` is reasoning, `final` text; a message `to=functions.NAME` is a call in any channel. A
// message of `commentary` that is to nobody is text for the user, said before calls.
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

#endif  // WHERRY_ENGINE_APP_TOOLS_FORMATS_FORMATS_H_
