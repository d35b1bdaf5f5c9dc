#include "app/template/parser.h"

#include "app/template/variables.h"

namespace wherry::jinja {

namespace {

constexpr int kDeepestTree = 150;  // upper bound on nested brackets and blocks
constexpr int kLongest = 1000;     // upper bound on the operands in one chain

}  // namespace

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  if (current().is(TokenKind::kError)) throw SyntaxError(current().text, current().line);
  return token;
}

bool Parser::skip_if(std::string_view sign) {
  if (!current().is(sign)) return false;
  next();
  return true;
}

bool Parser::skip_if_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

void Parser::fail_here(const std::string& message) const {
  throw SyntaxError(message, current().line);
}

const Token& Parser::expect(std::string_view sign) {
  if (!current().is(sign)) fail_here("expected " + std::string(sign));
  return next();
}

const Token& Parser::expect(TokenKind kind, const char* what) {
  if (!current().is(kind)) fail_here(std::string("expected ") + what);
  return next();
}

void Parser::expect_name(std::string_view name) {
  if (!current().is_name(name)) fail_here("expected " + std::string(name));
  next();
}

Parser::Deeper::Deeper(Parser& owner) : parser(owner) {
  if (++parser.depth_ > kDeepestTree) {
    --parser.depth_;
    parser.fail_here("it nests too deeply");
  }
}

void Parser::chain(int& length) const {
  if (++length > kLongest) fail_here("an expression has too many parts");
}

void Parser::known(bool is_known, const char* kind, const std::string& name, int line) {
  if (is_known || guarded_ > 0 || unknown_) return;
  unknown_ = std::make_unique<SyntaxError>(std::string("there is no ") + kind + " " + name, line);
}

void Parser::note(std::string_view name) {
  for (Statement* macro : macros_) {
    if (name == "caller") macro->takes_caller = true;
    if (name == "varargs") macro->takes_varargs = true;
    if (name == "kwargs") macro->takes_kwargs = true;
  }
}

void Parser::run() {
  if (current().is(TokenKind::kError)) throw SyntaxError(current().text, current().line);
  block_body(program_.body, nullptr);
  if (unknown_) throw *unknown_;
}

std::unique_ptr<Program> parse(std::string_view source) {
  auto program = std::make_unique<Program>();
  Parser(*program, tokenize(source)).run();
  program->variables = find_variables(*program);
  return program;
}

}  // namespace wherry::jinja
