// Interface of the formats in which models write tool calls.
#ifndef WHERRY_APP_TOOLS_FORMAT_H_
#define WHERRY_APP_TOOLS_FORMAT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/rules.h"
#include "app/tools/output.h"
#include "app/tools/scanner.h"
#include "app/value/value.h"

namespace wherry::app {

using json::Value;

// The tools of a request: their names and the JSON Schemas of their arguments.
class Tools {
 public:
  // Whether a grammar restricts calls to the exact format. The reader then treats the variants that
  // unconstrained models write by mistake as text.
  bool constrained = false;

  void add(std::string name, Value schema) {
    schemas_.emplace_back(std::move(name), std::move(schema));
  }
  bool empty() const { return schemas_.empty(); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Whether a tool has an argument; true if the tool or its properties are unknown.
  bool declares(std::string_view name, std::string_view argument) const;
  // Returns the JSON Schema types that an argument may have; none if they are unknown.
  Texts kinds(std::string_view name, std::string_view argument) const;

 private:
  // Returns the schema of a tool; null if the tool is unknown.
  const Value* find(std::string_view name) const;
  std::vector<std::pair<std::string, Value>> schemas_;
};

// A tool, and the grammar of its arguments.
struct CallRule {
  std::string name;
  Value schema;           // JSON Schema of the arguments
  std::string arguments;  // grammar expression of the arguments as one JSON object
  bool open = false;      // whether any arguments are allowed, because no schema has to be enforced
  // Expressions of the text of a custom tool whose grammar is part of the notation, outside of JSON
  // and as a JSON string; "": the schema says all.
  std::string input, input_in_json;
};
using CallRules = std::vector<CallRule>;

// Reads the tool calls of one format, and returns grammars that enforce it.
class Format {
 public:
  virtual ~Format() = default;

  virtual Texts begins() const = 0;   // returns the texts that begin calls within free text
  virtual Texts markers() const = 0;  // returns texts of the format that may be special tokens
  // Returns an example of a call, with the placeholders NAME, {ARGUMENTS}, KEY and VALUE. It is
  // shown to models whose template does not describe tools; "" if the format is unsuitable for
  // them.
  virtual std::string example() const = 0;
  // Returns calls, names with their arguments, as the model writes them: for templates that leave
  // out the calls of earlier turns.
  virtual std::string history(const std::vector<std::pair<std::string, Value>>& calls) const;
  // Returns whether an output may also begin with a call without any of `begins`.
  virtual bool bare() const { return false; }

  // Returns texts that the reader removes everywhere.
  virtual Texts silent() const { return {}; }
  // Returns texts that may begin a call within free text, where it counts only if it names a tool
  // of the request. In contrast to `begins`, they are part of the call.
  virtual Texts amid() const { return {}; }

  // Reads the calls after the mark `begin`, which is already consumed; returns whether there are
  // any. begin: one of `begins`; "" for calls without a mark. Text that is not a call is rejected
  // before the first call of Output::begin.
  virtual bool calls(Scanner& s, Output& out, const Tools& tools,
                     const std::string& begin) const = 0;

  // Reads a whole output after its reasoning.
  virtual void read(Scanner& s, Output& out, const Tools& tools) const;

  // Returns the keywords of a tool's schema that the format does not enforce, each as "keyword:
  // why".
  virtual Texts unenforced(const Value&) const { return {}; }
  // Returns the grammar expression of one call, or with `several` of one or more, after the first
  // of `begins`.
  virtual std::string written(Rules& rules, const CallRules& calls, bool several) const = 0;
  // Returns the grammar of an output, after the reasoning, that consists of calls only.
  virtual std::string forced(Rules& rules, const CallRules& calls, bool several) const;
  // Returns the grammar of an output, after the reasoning, that consists of text and optional
  // calls.
  virtual std::string free(Rules& rules, const CallRules& calls, bool several) const;
  // Returns the grammar of an output, after the reasoning, whose text matches `body`, an
  // expression.
  virtual std::string answer(Rules& rules, const std::string& body) const;
};

// Returns `texts` without the empty ones.
Texts not_empty(Texts texts);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_FORMAT_H_
