// The syntax tree of a parsed template.
#ifndef WHERRY_APP_TEMPLATE_SYNTAX_H_
#define WHERRY_APP_TEMPLATE_SYNTAX_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/value/value.h"

namespace wherry::jinja {

using namespace json;

// An interned name: equal names are one object, so they are compared by address.
using Name = const std::string*;

struct Expression;
struct Filter;
struct Test;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list, dict;  // the arguments *list and **dict
};

enum class ExpressionKind {
  kConstant,
  kName,          // a variable: name
  kNamespaceRef,  // the target ns.x of an assignment: name, text
  kTuple,
  kList,
  kDict,       // a dictionary: parts are key, value, key, value, ...
  kAttribute,  // an attribute: parts[0].text
  kItem,       // an item: parts[0][parts[1]]
  kSlice,      // a slice: parts[0][parts[1]:parts[2]:parts[3]], parts may be missing
  kCall,       // a call: parts[0](arguments)
  kFilter,     // a filter: parts[0] | text(arguments); parts[0] is missing in a filter block
  kTest,       // a test: parts[0] is text(arguments)
  kNot,
  kAnd,
  kOr,
  kNegative,
  kPositive,
  kBinary,   // a binary operator: operation
  kConcat,   // a concatenation: parts joined with ~
  kCompare,  // a comparison: parts[0] signs[0] parts[1] signs[1] ...
  kChoice,   // a conditional: parts[1] if parts[0] else parts[2], which may be missing
};

struct Expression {
  ExpressionKind kind;
  int line;
  Value constant;
  Name name = nullptr;
  std::string text;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> signs;
  std::unique_ptr<CallArguments> arguments;
  const Filter* filter = nullptr;  // null if the filter is unknown
  const Test* test = nullptr;
};

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Statements = std::vector<StatementPtr>;

enum class StatementKind {
  kText,       // plain text: text
  kPrint,      // {{ ... }}: prints parts
  kFor,        // a loop: target parts[0] in parts[1] if parts[2]; body, otherwise
  kIf,         // an if: conditions parts[i] of branches[i], then otherwise
  kSet,        // an assignment: parts[0] = parts[1]
  kSetBlock,   // a block assignment: parts[0] = body, through the filter parts[1]
  kMacro,      // a macro: name(parameters)
  kCallBlock,  // a call block: parts[0] is the call; parameters, body
  kFilterBlock,
  kWith,   // a with block: parts are target, value, target, value, ...
  kBlock,  // a named block: name
  kBreak,
  kContinue,
  kForeign,  // include, import, from, extends: fail when executed
};

struct Parameter {
  Name name;
  ExpressionPtr otherwise;
};

struct Statement {
  StatementKind kind;
  int line;
  Value text;
  Name name = nullptr;
  std::vector<ExpressionPtr> parts;
  std::vector<Parameter> parameters;
  Statements body, otherwise;
  std::vector<Statements> branches;
  bool recursive = false;
  // Which of these names the body of a macro or call block uses.
  bool takes_caller = false, takes_varargs = false, takes_kwargs = false;
};

struct Program {
  std::set<std::string> names;
  Statements body;
  std::vector<std::pair<Name, const Statement*>> blocks;
  std::set<std::string> variables;  // names that the template reads and does not set itself

  Name name(const std::string& text) { return &*names.insert(text).first; }
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_SYNTAX_H_
