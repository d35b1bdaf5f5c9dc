// The formats of tool calls. tool_families.json selects a format for each family and sets its
// fields. The comments show the syntax in EBNF, with field names in backquotes.
#ifndef WHERRY_APP_TOOLS_FORMATS_FORMATS_H_
#define WHERRY_APP_TOOLS_FORMATS_FORMATS_H_

#include <string>

#include "app/tools/call_object.h"
#include "app/tools/format.h"

namespace wherry::app {

// Call objects in JSON, or lists of them, after a mark: Hermes, Qwen, Granite, Phi, Cohere,
// Nemotron. `begin` {call} `end`, or `begin` [{call}, ...] `end`
struct Tagged : Format {
  Texts begin;          // the grammar uses the first one, the reader accepts all
  std::string end;      // text after the calls; "" for none
  bool listed = false;  // whether several calls form one list; else each has its own mark
  CallObject form;      // keys that the reader accepts
  // Texts of the call object before and after the tool's name.
  std::string head = "{\"name\": \"", middle = "\", \"arguments\": ";
  std::string space;  // white space between the marks and the object
  Texts left_out;     // texts that the reader removes everywhere

  Texts begins() const override { return begin; }
  Texts silent() const override { return left_out; }
  Texts markers() const override;
  std::string example() const override;
  std::string history(const std::vector<std::pair<std::string, Value>>& calls) const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
};

// Call objects in JSON, or lists of them, at the beginning of the output or after a mark: Llama 3.1
// to 3.3, and models of unknown families. Calls without a mark count only if they name a tool of
// the request.
struct Bare : Format {
  Texts begin;                                  // marks of calls
  std::string middle = "\", \"parameters\": ";  // text between name and arguments
  // Pairs of texts that may surround calls without a mark, such as code fences; the
  // reader removes them.
  std::vector<std::pair<std::string, std::string>> fences;
  Texts between;  // texts that may begin a call within free text, see Format::amid

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

// Calls with the tool's name in a header before the JSON arguments: DeepSeek, Kimi, Mistral,
// Functionary.
// `section`? (`begin` `before`? name `middle` arguments `end`)+ `section_end`?
struct Headed : Format {
  std::string begin;          // text that begins one call
  Texts middle;               // texts between header and arguments; the grammar uses the first one
  std::string before;         // optional text before the name
  std::string tag;            // text between the name and the call's id or number
  bool id_is_header = false;  // whether the id is the whole header, not only the text after the tag
  Texts end;                  // texts that end one call; the grammar uses the first one
  std::string section, section_end;  // texts around all calls; "" for none
  std::string between;               // text between two calls

  Texts begins() const override { return not_empty({section, begin}); }
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool call(Scanner& s, Output& out) const;  // reads one call after `begin`
  void arguments(Scanner& s, Output& out) const;
};

// The two formats of Mistral: "[TOOL_CALLS] [{call}, ...]", and since 2025
// "[TOOL_CALLS]name[ARGS]{...}". The reader accepts both.
struct Mistral : Format {
  bool named = false;  // whether example and grammar have the newer format
  Tagged list;
  Headed headed;

  Mistral();
  Texts begins() const override { return list.begin; }
  Texts markers() const override { return {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}; }
  std::string example() const override { return named ? headed.example() : list.example(); }
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
};

// Calls in XML-like markup, with one element per argument: Qwen3-Coder, GLM, MiniMax, DeepSeek
// V3.2.
// (`outer` (`call` name `named` (`key` key `keyed` value `ended`)* `call_end`)+ `outer_end`)
struct Markup : Format {
  std::string outer, outer_end;  // texts around calls
  // Texts before and after the tool's name, and at the end of a call. `call` is "" if the name
  // follows `outer` directly.
  std::string call = "<function=", named = ">", call_end = "</function>";
  std::string key = "<parameter=";     // text before an argument's name
  Texts keyed = {">"};                 // texts after the name; white space may separate them
  std::string ended = "</parameter>";  // text after an argument's value
  bool several = false;                // whether one outer element may contain several calls
  std::string pad;                     // text around a value, which the reader removes
  std::string line = "\n";             // white space after `outer`, `named` and `ended`
  bool typed = false;                  // whether an attribute in `keyed` marks string values
  Texts unclosed;  // texts that end a value without `ended`, unless a grammar enforces `ended`
  // Names of an argument whose value some models write as the object of all arguments. The reader
  // unwraps it if it is the only argument and the tool does not declare it.
  Texts wrappers;

  Texts begins() const override { return not_empty({outer, call}); }  // models may omit `outer`
  Texts markers() const override;
  std::string example() const override;
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  Texts unenforced(const Value& schema) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool one(Scanner& s, Output& out, const Tools& tools) const;
  void arguments(Scanner& s, Output& out, const Tools& tools, const std::string& name) const;
  std::string behind_key(Scanner& s) const;
  bool wrapped(Scanner& s, Output& out, const Tools& tools, const std::string& name) const;
  struct ValueForm {
    Texts kinds;  // JSON Schema types that the value may have
    Marks ends;   // texts that end it
  };
  ValueForm form_of(const Tools& tools, const std::string& name, const std::string& argument,
                    const std::string& attributes) const;
  bool value(Scanner& s, const Emit& emit, const ValueForm& form) const;
  std::string elements(Rules& rules, const CallRule& call) const;
};

// Gemma's format: `begin` call:name{key:value,...} `end`. Strings are between two `quote`.
struct Braces : Format {
  std::string begin, end, quote;  // texts around a call, delimiter of strings

  Texts begins() const override { return {begin}; }
  Texts markers() const override { return {begin, end, quote}; }
  std::string example() const override { return begin + "call:NAME{KEY:VALUE}" + end; }
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  Texts unenforced(const Value& schema) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;

 private:
  bool arguments(Scanner& s, Output& out) const;
  std::string written_members(Rules& rules, const CallRule& call) const;
  std::string written_value(Rules& rules, const Value& schema, const CallRule& call) const;
};

// Calls in Python syntax: Llama 3.2 and 4, Gemma 3, LFM2, Olmo 3.
// `begin` `[`? name(key=value, ...) (`,` or a line break) ... `]`? `end`
struct Pythonic : Format {
  Texts begin;           // marks; empty: calls are at the beginning, in brackets
  std::string end;       // text after the calls; "" for none
  bool brackets = true;  // whether several calls form a list

  Texts begins() const override { return begin; }
  Texts markers() const override;
  std::string example() const override;
  std::string history(const std::vector<std::pair<std::string, Value>>& calls) const override;
  // Calls without a mark count only if they name a tool of the request.
  bool bare() const override { return brackets; }
  bool calls(Scanner& s, Output& out, const Tools& tools, const std::string& begin) const override;
  Texts unenforced(const Value& schema) const override;
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
// Messages in the channel `analysis` are reasoning, those in `final` are text for the user. A
// message with the recipient `to=functions.NAME` is a call, in any channel; one in `commentary`
// without a recipient is text for the user before calls.
struct Harmony : Format {
  Texts begins() const override { return {"<|channel|>"}; }
  Texts markers() const override;
  std::string example() const override { return ""; }
  bool calls(Scanner&, Output&, const Tools&, const std::string&) const override { return false; }
  void read(Scanner& s, Output& out, const Tools& tools) const override;
  std::string written(Rules& rules, const CallRules& calls, bool several) const override;
  std::string forced(Rules& rules, const CallRules& calls, bool several) const override;
  std::string free(Rules& rules, const CallRules& calls, bool several) const override;
  std::string answer(Rules& rules, const std::string& body) const override;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_FORMATS_FORMATS_H_
