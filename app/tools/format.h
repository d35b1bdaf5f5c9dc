// The format in which a family of models writes tool calls. runtime_py/tools is the reference: each
// class has the same name there and returns the same parts for the same text.
#ifndef WHERRY_APP_TOOLS_FORMAT_H_
#define WHERRY_APP_TOOLS_FORMAT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/rules.h"
#include "app/template/value.h"
#include "app/tools/output.h"
#include "app/tools/scanner.h"

namespace wherry::app {

using jinja::Value;
using Texts = std::vector<std::string>;

// The tools of a request: their names, and the JSON Schemas of their arguments.
class Tools {
 public:
  // A grammar restricts the output to calls in the format, so that the reader treats the other
  // forms, which unconstrained models write by mistake, as text.
  bool held = false;

  void add(std::string name, Value schema) {
    schemas_.emplace_back(std::move(name), std::move(schema));
  }
  bool empty() const { return schemas_.empty(); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Whether a tool may have an argument of this name; true for tools without a known schema.
  bool declares(std::string_view name, std::string_view argument) const;
  // The types that an argument may have; none if unknown.
  Texts kinds(std::string_view name, std::string_view argument) const;

 private:
  const Value* find(std::string_view name) const;
  std::vector<std::pair<std::string, Value>> schemas_;
};

// A tool whose calls conform to a schema.
struct CallRule {
  std::string name;
  Value schema;           // the schema of its arguments
  std::string arguments;  // the grammar expression of its arguments as one JSON object
  bool open = false;  // the schema cannot be enforced, and need not be: any arguments are allowed
};
using CallRules = std::vector<CallRule>;

class Format {
 public:
  virtual ~Format() = default;

  virtual Texts begins() const = 0;   // texts that begin calls within free text
  virtual Texts markers() const = 0;  // texts that may be special tokens
  // An example of a call, with NAME, {ARGUMENTS}, KEY and VALUE in it, for models whose template
  // does not describe tools; "" if another format suits such models better.
  virtual std::string example() const = 0;
  // Whether calls may also appear at the beginning of an output without any of `begins`.
  virtual bool bare() const { return false; }

  // Texts that the reader removes everywhere.
  virtual Texts silent() const { return {}; }
  // Beginnings of calls within free text that have none of `begins`. Such calls count only if they
  // name a tool of the request.
  virtual Texts amid() const { return {}; }

  // Reads calls after `begin`, which is already consumed; returns whether there are any. Rejects
  // text that is not a call before it calls Output::begin.
  virtual bool calls(Scanner& s, Output& out, const Tools& tools,
                     const std::string& begin) const = 0;

  // Reads a part of an output, after its reasoning, up to a point where reading can resume; false
  // if nothing remains to be read. state: 0 at first, then the value of the previous call.
  virtual bool read(Scanner& s, Output& out, const Tools& tools, int& state) const;

  // The grammar of the format, as expressions.
  // The grammar of one call, or with `several` of one or more, after the first of `begins`.
  virtual std::string written(Rules& rules, const CallRules& calls, bool several) const = 0;
  // The grammar of an output, after its reasoning, that consists of calls only.
  virtual std::string forced(Rules& rules, const CallRules& calls, bool several) const;
  // The grammar of an output, after its reasoning, of text and optional calls.
  virtual std::string free(Rules& rules, const CallRules& calls, bool several) const;
  // The grammar of an output, after its reasoning, whose text is `body`.
  virtual std::string answer(Rules& rules, const std::string& body) const;
};

// The non-empty ones of `texts`.
Texts not_empty(Texts texts);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_FORMAT_H_
