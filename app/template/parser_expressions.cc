// Parses expressions, from the lowest precedence to the highest.
#include <algorithm>

#include "app/template/functions.h"
#include "app/template/parser.h"

namespace wherry::jinja {

namespace {

constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};

}  // namespace

ExpressionPtr Parser::make(ExpressionKind kind, int line) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

ExpressionPtr Parser::binary(const std::string& sign, ExpressionPtr a, ExpressionPtr b, int line) {
  ExpressionPtr node = make(ExpressionKind::kBinary, line);
  node->text = sign;
  node->parts.push_back(std::move(a));
  node->parts.push_back(std::move(b));
  return node;
}

void Parser::check_target(const Expression& node) const {
  if (node.kind == ExpressionKind::kTuple) {
    for (const ExpressionPtr& part : node.parts) check_target(*part);
  } else if (node.kind != ExpressionKind::kName && node.kind != ExpressionKind::kNamespaceRef) {
    fail_here("an expression is assigned to");
  }
}

ExpressionPtr Parser::target(bool with_namespace) {
  ExpressionPtr node = tuple(true, true, "", false, with_namespace);
  check_target(*node);
  return node;
}

ExpressionPtr Parser::tuple(bool simplified, bool with_choice, std::string_view end_name,
                            bool parenthesised, bool with_namespace) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  bool several = false;
  while (true) {
    if (!parts.empty()) expect(",");
    const Token& token = current();
    const bool ended = token.is(TokenKind::kVariableEnd) || token.is(TokenKind::kBlockEnd) ||
                       token.is(")") || (!end_name.empty() && token.is_name(end_name));
    if (ended) break;
    parts.push_back(simplified ? primary(with_namespace) : expression(with_choice));
    if (!current().is(",")) break;
    several = true;
  }
  if (!several) {
    if (!parts.empty()) return std::move(parts[0]);
    if (!parenthesised) fail_here("expected an expression, found " + current().text);
  }
  ExpressionPtr node = make(ExpressionKind::kTuple, line);
  node->parts = std::move(parts);
  return node;
}

ExpressionPtr Parser::expression(bool with_choice) {
  Deeper deeper(*this);
  return with_choice ? choice() : either();
}

ExpressionPtr Parser::choice() {
  const int line = current().line;
  const bool unknown = unknown_ != nullptr;
  const size_t start = at_;
  ExpressionPtr first = either();
  int length = 0;
  while (current().is_name("if")) {
    if (!unknown && unknown_ && length == 0) {  // a condition guards the unknown name after all
      unknown_.reset();
      at_ = start;
      ++guarded_;
      first = either();
      --guarded_;
    }
    next();
    chain(length);
    ++guarded_;
    ExpressionPtr node = make(ExpressionKind::kChoice, line);
    node->parts.push_back(either());
    node->parts.push_back(std::move(first));
    node->parts.push_back(skip_if_name("else") ? choice() : nullptr);
    --guarded_;
    first = std::move(node);
  }
  return first;
}

ExpressionPtr Parser::either() {
  const int line = current().line;
  ExpressionPtr left = both();
  for (int length = 0; skip_if_name("or");) {
    chain(length);
    ExpressionPtr node = make(ExpressionKind::kOr, line);
    node->parts.push_back(std::move(left));
    node->parts.push_back(both());
    left = std::move(node);
  }
  return left;
}

ExpressionPtr Parser::both() {
  const int line = current().line;
  ExpressionPtr left = negation();
  for (int length = 0; skip_if_name("and");) {
    chain(length);
    ExpressionPtr node = make(ExpressionKind::kAnd, line);
    node->parts.push_back(std::move(left));
    node->parts.push_back(negation());
    left = std::move(node);
  }
  return left;
}

ExpressionPtr Parser::negation() {
  if (!current().is_name("not")) return comparison();
  Deeper deeper(*this);
  ExpressionPtr node = make(ExpressionKind::kNot, next().line);
  node->parts.push_back(negation());
  return node;
}

ExpressionPtr Parser::comparison() {
  const int line = current().line;
  ExpressionPtr node = make(ExpressionKind::kCompare, line);
  node->parts.push_back(sum());
  for (int length = 0;;) {
    const Token& token = current();
    const bool sign = token.is(TokenKind::kOperator) &&
                      std::count(std::begin(kComparisons), std::end(kComparisons), token.text) > 0;
    if (sign) {
      node->signs.push_back(next().text);
    } else if (skip_if_name("in")) {
      node->signs.push_back("in");
    } else if (token.is_name("not") && look().is_name("in")) {
      next();
      next();
      node->signs.push_back("not in");
    } else {
      break;
    }
    chain(length);
    node->parts.push_back(sum());
  }
  return node->signs.empty() ? std::move(node->parts[0]) : std::move(node);
}

ExpressionPtr Parser::sum() {
  const int line = current().line;
  ExpressionPtr left = concatenation();
  for (int length = 0; current().is("+") || current().is("-");) {
    chain(length);
    const std::string sign = next().text;
    left = binary(sign, std::move(left), concatenation(), line);
  }
  return left;
}

ExpressionPtr Parser::concatenation() {
  ExpressionPtr first = product();
  if (!current().is("~")) return first;
  ExpressionPtr node = make(ExpressionKind::kConcat, first->line);
  node->parts.push_back(std::move(first));
  while (skip_if("~")) node->parts.push_back(product());
  return node;
}

ExpressionPtr Parser::product() {
  const int line = current().line;
  ExpressionPtr left = power();
  const auto signs = {"*", "/", "//", "%"};
  const auto goes_on = [&] {
    return std::any_of(signs.begin(), signs.end(), [&](const char* s) { return current().is(s); });
  };
  for (int length = 0; goes_on();) {
    chain(length);
    const std::string sign = next().text;
    left = binary(sign, std::move(left), power(), line);
  }
  return left;
}

ExpressionPtr Parser::power() {
  const int line = current().line;
  ExpressionPtr left = unary();
  for (int length = 0; skip_if("**");) {
    chain(length);
    left = binary("**", std::move(left), unary(), line);
  }
  return left;
}

ExpressionPtr Parser::unary(bool with_filter) {
  Deeper deeper(*this);
  ExpressionPtr node;
  if (current().is("-") || current().is("+")) {
    const Token& token = next();
    const bool minus = token.is("-");
    node = make(minus ? ExpressionKind::kNegative : ExpressionKind::kPositive, token.line);
    node->parts.push_back(unary(false));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

}  // namespace wherry::jinja
