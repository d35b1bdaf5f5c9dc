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
  ExpressionPtr made;
  if (token.is("[")) {
    made = subscribed(std::move(node));
    expect("]");
    return made;
  }
  const Token& name = current();
  if (name.is(TokenKind::kName)) {
    made = make(ExpressionKind::kAttribute, name.line);
    made->text = next().text;
    made->constant = Value(made->text);
    made->parts.push_back(std::move(node));
  } else if (name.is(TokenKind::kInteger)) {
    made = make(ExpressionKind::kItem, name.line);
    made->parts.push_back(std::move(node));
    made->parts.push_back(make(ExpressionKind::kConstant, name.line));
    made->parts[1]->constant = Value(next().integer);
  } else {
    fail_here("expected name or number");
  }
  return made;
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
  ExpressionPtr made = make(slice ? ExpressionKind::kSlice : ExpressionKind::kItem, line);
  made->parts.push_back(std::move(node));
  if (slice) {
    next();
    bound();
    if (skip_if(":")) bound();
    bounds.resize(3);
  }
  for (ExpressionPtr& part : bounds) made->parts.push_back(std::move(part));
  return made;
}

std::unique_ptr<CallArguments> Parser::call_arguments() {
  auto made = std::make_unique<CallArguments>();
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
      ensure(!made->list && !made->dict);
      made->list = expression();
    } else if (skip_if("**")) {
      ensure(!made->dict);
      made->dict = expression();
    } else if (current().is(TokenKind::kName) && look().is("=")) {
      ensure(!made->dict);
      const std::string name = next().text;
      next();
      made->named.emplace_back(name, expression());
    } else {
      ensure(!made->list && !made->dict && made->named.empty());
      made->positional.push_back(expression());
    }
    comma = true;
  }
  expect(")");
  return made;
}

ExpressionPtr Parser::call(ExpressionPtr node) {
  ExpressionPtr made = make(ExpressionKind::kCall, current().line);
  made->arguments = call_arguments();
  made->parts.push_back(std::move(node));
  return made;
}

ExpressionPtr Parser::filter(ExpressionPtr node, bool inline_start) {
  for (int length = 0; inline_start || skip_if("|"); inline_start = false) {
    chain(length);
    const Token token = expect(TokenKind::kName, "name");
    std::string name = token.text;
    while (skip_if(".")) name += "." + expect(TokenKind::kName, "name").text;
    ExpressionPtr made = make(ExpressionKind::kFilter, token.line);
    made->arguments = current().is("(") ? call_arguments() : std::make_unique<CallArguments>();
    made->parts.push_back(std::move(node));
    made->filter = find_filter(name);
    made->text = name;
    known(made->filter != nullptr, "filter", name, token.line);
    node = std::move(made);
  }
  return node;
}

ExpressionPtr Parser::test(ExpressionPtr node) {
  const int line = next().line;
  const bool negated = skip_if_name("not");
  std::string name = expect(TokenKind::kName, "name").text;
  while (skip_if(".")) name += "." + expect(TokenKind::kName, "name").text;
  ExpressionPtr made = make(ExpressionKind::kTest, line);
  made->text = name;
  made->test = find_test(name);
  known(made->test != nullptr, "test", name, line);
  const Token& token = current();
  const bool value = token.is(TokenKind::kString) || token.is(TokenKind::kInteger) ||
                     token.is(TokenKind::kFloat) || token.is("[") || token.is("{") ||
                     (token.is(TokenKind::kName) && !token.is_name("else") &&
                      !token.is_name("or") && !token.is_name("and"));
  if (token.is("(")) {
    made->arguments = call_arguments();
  } else {
    made->arguments = std::make_unique<CallArguments>();
    if (value) {
      if (token.is_name("is")) fail_here("a test follows a test");
      made->arguments->positional.push_back(postfix(primary()));
    }
  }
  made->parts.push_back(std::move(node));
  if (!negated) return made;
  ExpressionPtr opposite = make(ExpressionKind::kNot, line);
  opposite->parts.push_back(std::move(made));
  return opposite;
}

}  // namespace wherry::jinja
