// Parses operands: literals and names, and their postfix operators.
#include "app/template/functions.h"
#include "app/template/parser.h"

namespace wherry::jinja {

ExpressionPtr Parser::primary(bool with_namespace) {
  const Token token = current();
  ExpressionPtr node = make(ExpressionKind::kConstant, token.line);
  if (token.is(TokenKind::kName)) {
    next();
    const std::string& name = token.text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      node->constant = Value(name == "true" || name == "True");
    } else if (name != "none" && name != "None") {
      node->kind = ExpressionKind::kName;
      node->name = program_.name(name);
      if (with_namespace && skip_if(".")) {
        node->kind = ExpressionKind::kNamespaceRef;
        node->text = expect(TokenKind::kName, "name").text;
      } else {
        note(name);
      }
    }
  } else if (token.is(TokenKind::kString)) {
    std::string text;
    while (current().is(TokenKind::kString)) text += next().text;
    node->constant = Value(std::move(text));
  } else if (token.is(TokenKind::kInteger)) {
    node->constant = Value(next().integer);
  } else if (token.is(TokenKind::kFloat)) {
    node->constant = Value(next().number);
  } else if (token.is("(")) {
    next();
    node = tuple(false, true, "", true);
    expect(")");
  } else if (token.is("[")) {
    node = list();
  } else if (token.is("{")) {
    node = dict();
  } else {
    fail_here("unexpected " + token.text);
  }
  return node;
}

ExpressionPtr Parser::list() {
  ExpressionPtr node = make(ExpressionKind::kList, expect("[").line);
  while (!current().is("]")) {
    if (!node->parts.empty()) expect(",");
    if (current().is("]")) break;
    node->parts.push_back(expression());
  }
  expect("]");
  return node;
}

ExpressionPtr Parser::dict() {
  ExpressionPtr node = make(ExpressionKind::kDict, expect("{").line);
  while (!current().is("}")) {
    if (!node->parts.empty()) expect(",");
    if (current().is("}")) break;
    node->parts.push_back(expression());
    expect(":");
    node->parts.push_back(expression());
  }
  expect("}");
  return node;
}

ExpressionPtr Parser::postfix(ExpressionPtr node) {
  for (int length = 0;; chain(length)) {
    if (current().is(".") || current().is("[")) {
      node = subscript(std::move(node));
    } else if (current().is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::filters_and_tests(ExpressionPtr node) {
  for (int length = 0;; chain(length)) {
    if (current().is("|")) {
      node = filter(std::move(node));
    } else if (current().is_name("is")) {
      node = test(std::move(node));
    } else if (current().is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr node) {
  const Token& token = next();
  ExpressionPtr expression;
  if (token.is("[")) {
    expression = subscribed(std::move(node));
    expect("]");
    return expression;
  }
  const Token& name = current();
  if (name.is(TokenKind::kName)) {
    expression = make(ExpressionKind::kAttribute, name.line);
    expression->text = next().text;
    expression->constant = Value(expression->text);
    expression->parts.push_back(std::move(node));
  } else if (name.is(TokenKind::kInteger)) {
    expression = make(ExpressionKind::kItem, name.line);
    expression->parts.push_back(std::move(node));
    expression->parts.push_back(make(ExpressionKind::kConstant, name.line));
    expression->parts[1]->constant = Value(next().integer);
  } else {
    fail_here("expected name or number");
  }
  return expression;
}

ExpressionPtr Parser::subscribed(ExpressionPtr node) {
  const int line = current().line;
  std::vector<ExpressionPtr> bounds;
  const auto bound = [&] {
    const bool none = current().is(":") || current().is("]") || current().is(",");
    bounds.push_back(none ? nullptr : expression());
  };
  if (current().is("]")) {  // x[] means x[()]
    bounds.push_back(make(ExpressionKind::kTuple, line));
  } else {
    bound();
  }
  if (current().is(",")) {
    ExpressionPtr several = make(ExpressionKind::kTuple, line);
    several->parts.push_back(std::move(bounds[0]));
    while (skip_if(",")) several->parts.push_back(expression());
    bounds[0] = std::move(several);
  }
  const bool slice = current().is(":");
  ExpressionPtr result = make(slice ? ExpressionKind::kSlice : ExpressionKind::kItem, line);
  result->parts.push_back(std::move(node));
  if (slice) {
    next();
    bound();
    if (skip_if(":")) bound();
    bounds.resize(3);
  }
  for (ExpressionPtr& part : bounds) result->parts.push_back(std::move(part));
  return result;
}

std::unique_ptr<CallArguments> Parser::call_arguments() {
  auto result = std::make_unique<CallArguments>();
  const int line = expect("(").line;
  const auto ensure = [&](bool right) {
    if (!right) throw SyntaxError("invalid syntax for function call expression", line);
  };
  bool comma = false;
  while (!current().is(")")) {
    if (comma) {
      expect(",");
      if (current().is(")")) break;
    }
    if (skip_if("*")) {
      ensure(!result->list && !result->dict);
      result->list = expression();
    } else if (skip_if("**")) {
      ensure(!result->dict);
      result->dict = expression();
    } else if (current().is(TokenKind::kName) && look().is("=")) {
      ensure(!result->dict);
      const std::string name = next().text;
      next();
      result->named.emplace_back(name, expression());
    } else {
      ensure(!result->list && !result->dict && result->named.empty());
      result->positional.push_back(expression());
    }
    comma = true;
  }
  expect(")");
  return result;
}

ExpressionPtr Parser::call(ExpressionPtr node) {
  ExpressionPtr expression = make(ExpressionKind::kCall, current().line);
  expression->arguments = call_arguments();
  expression->parts.push_back(std::move(node));
  return expression;
}

ExpressionPtr Parser::filter(ExpressionPtr node, bool inline_start) {
  for (int length = 0; inline_start || skip_if("|"); inline_start = false) {
    chain(length);
    const Token token = expect(TokenKind::kName, "name");
    std::string name = token.text;
    while (skip_if(".")) name += "." + expect(TokenKind::kName, "name").text;
    ExpressionPtr expression = make(ExpressionKind::kFilter, token.line);
    expression->arguments =
        current().is("(") ? call_arguments() : std::make_unique<CallArguments>();
    expression->parts.push_back(std::move(node));
    expression->filter = find_filter(name);
    expression->text = name;
    known(expression->filter != nullptr, "filter", name, token.line);
    node = std::move(expression);
  }
  return node;
}

ExpressionPtr Parser::test(ExpressionPtr node) {
  const int line = next().line;
  const bool negated = skip_if_name("not");
  std::string name = expect(TokenKind::kName, "name").text;
  while (skip_if(".")) name += "." + expect(TokenKind::kName, "name").text;
  ExpressionPtr expression = make(ExpressionKind::kTest, line);
  expression->text = name;
  expression->test = find_test(name);
  known(expression->test != nullptr, "test", name, line);
  const Token& token = current();
  const bool value = token.is(TokenKind::kString) || token.is(TokenKind::kInteger) ||
                     token.is(TokenKind::kFloat) || token.is("[") || token.is("{") ||
                     (token.is(TokenKind::kName) && !token.is_name("else") &&
                      !token.is_name("or") && !token.is_name("and"));
  if (token.is("(")) {
    expression->arguments = call_arguments();
  } else {
    expression->arguments = std::make_unique<CallArguments>();
    if (value) {
      if (token.is_name("is")) fail_here("a test follows a test");
      expression->arguments->positional.push_back(postfix(primary()));
    }
  }
  expression->parts.push_back(std::move(node));
  if (!negated) return expression;
  ExpressionPtr opposite = make(ExpressionKind::kNot, line);
  opposite->parts.push_back(std::move(expression));
  return opposite;
}

}  // namespace wherry::jinja
