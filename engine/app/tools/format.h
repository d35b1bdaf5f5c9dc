// What a family of models writes when it calls tools. runtime_py/tools is the reference: each
// reader here is the one of that name there, and gives the same parts for the same text.
#ifndef WHERRY_ENGINE_APP_TOOLS_FORMAT_H_
#define WHERRY_ENGINE_APP_TOOLS_FORMAT_H_

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

// The tools of a request: their names, and JSON Schemas of the arguments.
class Tools {
 public:
  // A grammar holds the output to calls as the format writes them, so that others, which models
  // write where they forget the format, are text.
  bool held = false;

  void add(std::string name, Value schema) {
    schemas_.emplace_back(std::move(name), std::move(schema));
  }
  bool empty() const { return schemas_.empty(); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Whether a tool may have an argument of this name: one of which nothing is known may.
  bool declares(std::string_view name, std::string_view argument) const;
  // The types that an argument may have; none if that is not said.
  Texts kinds(std::string_view name, std::string_view argument) const;

 private:
  const Value* find(std::string_view name) const;
  std::vector<std::pair<std::string, Value>> schemas_;
};

// A tool whose calls are held to a schema.
struct CallRule {
  std::string name;
  Value schema;           // of its arguments
  std::string arguments;  // the expression of them, as one object of JSON
  bool open = false;      // the schema cannot be enforced, and need not be: any arguments will do
};
using CallRules = std::vector<CallRule>;

class Format {
 public:
  virtual ~Format() = default;

  virtual Texts begins() const = 0;   // texts that begin calls amid free text
  virtual Texts markers() const = 0;  // texts that may be special tokens, which readers have to see
  // How a call is written, with NAME, {ARGUMENTS}, KEY and VALUE in it, for models that are told of
  // tools in words alone; "" if they are better told of another format.
  virtual std::string example() const = 0;
  // Whether calls may also stand at the very beginning without any of `begins`.
  virtual bool bare() const { return false; }

  // Texts that are left out wherever they stand.
  virtual Texts silent() const { return {}; }
  // How calls begin that stand amid free text without any of `begins`. They count if they name a
  // tool of the request.
  virtual Texts amid() const { return {}; }

  // Takes calls after `begin`, which is taken; whether there are any. What is not a call is found
  // out before Output::begin.
  virtual bool calls(Scanner& s, Output& out, const Tools& tools,
                     const std::string& begin) const = 0;

  // Takes some of an output, after its reasoning, from one sure place to the next; false if there
  // is nothing more for it. state: 0 at first, and what the last call left in it.
  virtual bool read(Scanner& s, Output& out, const Tools& tools, int& state) const;

  // What holds a model to this format: expressions of a grammar.
  // Grammar of one call, or with `several` of one or more, after the first of `begins`.
  virtual std::string written(Rules& rules, const CallRules& calls, bool several) const = 0;
  // Grammar of an output, after its reasoning, that is calls and nothing else.
  virtual std::string forced(Rules& rules, const CallRules& calls, bool several) const;
  // Grammar of an output, after its reasoning, of text and optional calls.
  virtual std::string free(Rules& rules, const CallRules& calls, bool several) const;
  // Grammar of an output, after its reasoning, whose text is `body`.
  virtual std::string answer(Rules& rules, const std::string& body) const;
};

// The non-empty ones of `texts`.
Texts not_empty(Texts texts);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_TOOLS_FORMAT_H_
