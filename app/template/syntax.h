// The syntax tree of a template.
#ifndef WHERRY_APP_TEMPLATE_SYNTAX_H_
#define WHERRY_APP_TEMPLATE_SYNTAX_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/template/value.h"

namespace wherry::jinja {

// An interned name: equal names are one object, compared by address.
using Name = const std::string*;

struct Expression;
struct Filter;
struct Test;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list, dict;  // *list, **dict
};

enum class ExpressionKind {
  kConstant,
  kName,          // name
  kNamespaceRef,  // name, text: the target ns.x of an assignment
  kTuple,
  kList,
  kDict,       // parts: key, value, key, value, ...
  kAttribute,  // parts[0].text
  kItem,       // parts[0][parts[1]]
  kSlice,      // parts[0][parts[1]:parts[2]:parts[3]], parts may be missing
  kCall,       // parts[0](arguments)
  kFilter,     // parts[0] | text(arguments); parts[0] is missing in a filter block
  kTest,       // parts[0] is text(arguments)
  kNot,
  kAnd,
  kOr,
  kNegative,
  kPositive,
  kBinary,   // operation
  kConcat,   // parts joined with ~
  kCompare,  // parts[0] signs[0] parts[1] signs[1] ...
  kChoice,   // parts[1] if parts[0] else parts[2], which may be missing
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
  const Filter* filter = nullptr;  // null: unknown
  const Test* test = nullptr;
};

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Statements = std::vector<StatementPtr>;

enum class StatementKind {
  kText,       // text
  kPrint,      // parts
  kFor,        // target parts[0] in parts[1] if parts[2]; body, otherwise
  kIf,         // conditions parts[i] of branches[i], then otherwise
  kSet,        // parts[0] = parts[1]
  kSetBlock,   // parts[0] = body, through the filter parts[1]
  kMacro,      // name(parameters)
  kCallBlock,  // parts[0] is the call; parameters, body
  kFilterBlock,
  kWith,   // parts: target, value, target, value, ...
  kBlock,  // name
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
  // For macros and call blocks: which of these names the body uses.
  bool takes_caller = false, takes_varargs = false, takes_kwargs = false;
};

struct Program {
  std::set<std::string> names;
  Statements body;
  std::vector<std::pair<Name, const Statement*>> blocks;
  std::set<std::string> variables;  // names that it reads and does not set itself

  Name name(const std::string& text) { return &*names.insert(text).first; }
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_SYNTAX_H_
