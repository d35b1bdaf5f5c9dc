// Parses statements, which stand between {% and %}.
#include <algorithm>

#include "app/template/parser.h"

namespace wherry::jinja {

namespace {

StatementPtr statement_of(StatementKind kind, int line) {
  auto node = std::make_unique<Statement>();
  node->kind = kind;
  node->line = line;
  return node;
}

}  // namespace

void Parser::block_body(Statements& into, const Ends* ends) {
  Deeper deeper(*this);
  while (!current().is(TokenKind::kEnd)) {
    const Token& token = next();
    if (token.is(TokenKind::kData)) {
      into.push_back(statement_of(StatementKind::kText, token.line));
      into.back()->text = Value(token.text);
    } else if (token.is(TokenKind::kVariableBegin)) {
      into.push_back(statement_of(StatementKind::kPrint, token.line));
      into.back()->parts.push_back(tuple());
      expect(TokenKind::kVariableEnd, "end of print statement");
    } else if (token.is(TokenKind::kBlockBegin)) {
      const bool ended = ends != nullptr && current().is(TokenKind::kName) &&
                         std::count(ends->begin(), ends->end(), current().text) > 0;
      if (ended) break;
      statement(into);
      expect(TokenKind::kBlockEnd, "end of statement block");
    } else {
      fail_here("there is " + token.text + " outside of tags");
    }
  }
}

Statements Parser::statements_until(const Ends& ends) {
  skip_if(":");
  expect(TokenKind::kBlockEnd, "end of statement block");
  Statements body;
  block_body(body, &ends);
  if (current().is(TokenKind::kEnd)) unknown_tag(nullptr);
  return body;
}

Statements Parser::body_until(const Ends& ends) {
  Statements body = statements_until(ends);
  next();
  return body;
}

void Parser::unknown_tag(const std::string* name) {
  const std::string open = tags_.empty() ? "" : "; " + tags_.back() + " is open";
  fail_here((name == nullptr ? "the template ends" : "there is no tag " + *name) + open);
}

void Parser::statement(Statements& into) {
  const Token token = current();
  if (!token.is(TokenKind::kName)) fail_here("a tag has no name");
  const std::string& name = token.text;
  tags_.push_back(name);
  if (name == "for") {
    into.push_back(parse_for());
  } else if (name == "if") {
    into.push_back(parse_if());
  } else if (name == "set") {
    into.push_back(parse_set());
  } else if (name == "macro") {
    into.push_back(parse_macro());
  } else if (name == "call") {
    into.push_back(parse_call_block());
  } else if (name == "filter") {
    into.push_back(parse_filter_block());
  } else if (name == "with") {
    into.push_back(parse_with());
  } else if (name == "block") {
    into.push_back(parse_block());
  } else if (name == "print") {
    into.push_back(parse_print());
  } else if (name == "generation") {
    // A generation block marks the assistant's text for training; only its body is printed.
    next();
    for (StatementPtr& inner : body_until({"endgeneration"})) into.push_back(std::move(inner));
  } else if (name == "break" || name == "continue") {
    if (loops_ == 0) fail_here("'" + name + "' outside loop");
    next();
    const bool ends = name == "break";
    into.push_back(
        statement_of(ends ? StatementKind::kBreak : StatementKind::kContinue, token.line));
  } else if (name == "include" || name == "import" || name == "from" || name == "extends") {
    into.push_back(parse_foreign());
  } else {
    tags_.pop_back();
    unknown_tag(&name);
  }
  tags_.pop_back();
}

StatementPtr Parser::parse_for() {
  StatementPtr node = statement_of(StatementKind::kFor, next().line);
  const int guarded = std::exchange(guarded_, 0);
  node->parts.push_back(tuple(true, true, "in"));
  if (node->parts[0]->kind == ExpressionKind::kName && *node->parts[0]->name == "loop") {
    fail_here("loop is not assigned to");
  }
  check_target(*node->parts[0]);
  expect_name("in");
  node->parts.push_back(tuple(false, false, "recursive"));
  node->parts.push_back(skip_if_name("if") ? expression() : nullptr);
  node->recursive = skip_if_name("recursive");
  ++loops_;
  node->body = statements_until({"endfor", "else"});
  --loops_;
  if (next().text == "else") node->otherwise = body_until({"endfor"});
  guarded_ = guarded;
  return node;
}

StatementPtr Parser::parse_if() {
  StatementPtr node = statement_of(StatementKind::kIf, next().line);
  ++guarded_;
  while (true) {
    node->parts.push_back(tuple(false, false));
    node->branches.push_back(statements_until({"elif", "else", "endif"}));
    const std::string end = next().text;
    if (end == "elif") continue;
    if (end == "else") node->otherwise = body_until({"endif"});
    break;
  }
  --guarded_;
  return node;
}

StatementPtr Parser::parse_set() {
  const int line = next().line;
  ExpressionPtr to = target(true);
  StatementPtr node = statement_of(StatementKind::kSet, line);
  node->parts.push_back(std::move(to));
  if (skip_if("=")) {
    node->parts.push_back(tuple());
    return node;
  }
  node->kind = StatementKind::kSetBlock;
  node->parts.push_back(filter(nullptr));
  const int guarded = std::exchange(guarded_, 0);
  node->body = body_until({"endset"});
  guarded_ = guarded;
  return node;
}

void Parser::parse_signature(Statement& into) {
  expect("(");
  bool optional = false;
  while (!current().is(")")) {
    if (!into.parameters.empty()) expect(",");
    Parameter parameter;
    parameter.name = program_.name(expect(TokenKind::kName, "name").text);
    if (skip_if("=")) {
      optional = true;
      parameter.otherwise = expression();
    } else if (optional) {
      fail_here("an argument without a default follows one with");
    }
    into.parameters.push_back(std::move(parameter));
  }
  expect(")");
}

// Parses the body of a macro or call block, which runs as a function.
void Parser::macro_body(Statement& macro, const char* end) {
  const int loops = std::exchange(loops_, 0), guarded = std::exchange(guarded_, 0);
  macros_.push_back(&macro);
  macro.body = body_until({end});
  macros_.pop_back();
  loops_ = loops;
  guarded_ = guarded;
}

StatementPtr Parser::parse_macro() {
  StatementPtr node = statement_of(StatementKind::kMacro, next().line);
  node->name = program_.name(expect(TokenKind::kName, "name").text);
  parse_signature(*node);
  macro_body(*node, "endmacro");
  return node;
}

StatementPtr Parser::parse_call_block() {
  StatementPtr node = statement_of(StatementKind::kCallBlock, next().line);
  node->name = program_.name("caller");
  if (current().is("(")) parse_signature(*node);
  node->parts.push_back(expression());
  if (node->parts[0]->kind != ExpressionKind::kCall) fail_here("expected call");
  macro_body(*node, "endcall");
  return node;
}

StatementPtr Parser::parse_filter_block() {
  StatementPtr node = statement_of(StatementKind::kFilterBlock, next().line);
  node->parts.push_back(filter(nullptr, true));
  const int guarded = std::exchange(guarded_, 0);
  node->body = body_until({"endfilter"});
  guarded_ = guarded;
  return node;
}

StatementPtr Parser::parse_with() {
  StatementPtr node = statement_of(StatementKind::kWith, next().line);
  while (!current().is(TokenKind::kBlockEnd)) {
    if (!node->parts.empty()) expect(",");
    node->parts.push_back(target(false));
    expect("=");
    node->parts.push_back(expression());
  }
  const int guarded = std::exchange(guarded_, 0);
  node->body = body_until({"endwith"});
  guarded_ = guarded;
  return node;
}

StatementPtr Parser::parse_block() {
  StatementPtr node = statement_of(StatementKind::kBlock, next().line);
  node->name = program_.name(expect(TokenKind::kName, "name").text);
  skip_if_name("scoped");
  skip_if_name("required");
  for (const auto& [name, other] : program_.blocks) {
    if (name == node->name) fail_here("there are two blocks " + *name);
  }
  program_.blocks.emplace_back(node->name, node.get());
  const int loops = std::exchange(loops_, 0), guarded = std::exchange(guarded_, 0);
  node->body = body_until({"endblock"});
  loops_ = loops;
  guarded_ = guarded;
  skip_if_name(*node->name);
  return node;
}

StatementPtr Parser::parse_print() {
  StatementPtr node = statement_of(StatementKind::kPrint, next().line);
  while (!current().is(TokenKind::kBlockEnd)) {
    if (!node->parts.empty()) expect(",");
    node->parts.push_back(expression());
  }
  return node;
}

// Parses statements that refer to other templates, which do not exist here: they fail when
// executed.
StatementPtr Parser::parse_foreign() {
  StatementPtr node = statement_of(StatementKind::kForeign, next().line);
  while (!current().is(TokenKind::kBlockEnd) && !current().is(TokenKind::kEnd)) next();
  return node;
}

}  // namespace wherry::jinja
