// Parses a template's tokens into a syntax tree, by Jinja's grammar.
#ifndef WHERRY_APP_TEMPLATE_PARSER_H_
#define WHERRY_APP_TEMPLATE_PARSER_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/template/lexer.h"
#include "app/template/syntax.h"

namespace wherry::jinja {

// Parses a template. Throws SyntaxError.
std::unique_ptr<Program> parse(std::string_view source);

class Parser {
 public:
  Parser(Program& program, std::vector<Token> tokens)
      : program_(program), tokens_(std::move(tokens)) {}
  void run();

 private:
  using Ends = std::vector<std::string_view>;

  // Access to the token stream.
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + (at_ + 1 < tokens_.size())]; }
  const Token& next();
  bool skip_if(std::string_view sign);
  bool skip_if_name(std::string_view name);
  const Token& expect(std::string_view sign);
  const Token& expect(TokenKind kind, const char* what);
  void expect_name(std::string_view name);
  [[noreturn]] void fail_here(const std::string& message) const;

  // Parsers of statements, in parser_statements.cc. After statements_until, the name of the ending
  // tag is current.
  Statements statements_until(const Ends& ends);
  Statements body_until(const Ends& ends);  // also consumes the end of the tag
  void block_body(Statements& into, const Ends* ends);
  void statement(Statements& into);
  StatementPtr parse_for();
  StatementPtr parse_if();
  StatementPtr parse_set();
  StatementPtr parse_macro();
  StatementPtr parse_call_block();
  StatementPtr parse_filter_block();
  StatementPtr parse_with();
  StatementPtr parse_block();
  StatementPtr parse_print();
  StatementPtr parse_foreign();
  void parse_signature(Statement& into);
  void macro_body(Statement& macro, const char* end);
  void note(std::string_view name);  // records a name that a macro's body reads
  [[noreturn]] void unknown_tag(const std::string* name);

  // Parsers of expressions, in parser_expressions.cc.
  ExpressionPtr target(bool with_namespace);
  void check_target(const Expression& node) const;
  ExpressionPtr tuple(bool simplified = false, bool with_choice = true,
                      std::string_view end_name = "", bool parenthesised = false,
                      bool with_namespace = false);
  ExpressionPtr expression(bool with_choice = true);
  ExpressionPtr choice();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);
  ExpressionPtr primary(bool with_namespace = false);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr subscribed(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr filter(ExpressionPtr node, bool inline_start = false);
  ExpressionPtr test(ExpressionPtr node);
  std::unique_ptr<CallArguments> call_arguments();
  ExpressionPtr make(ExpressionKind kind, int line);
  ExpressionPtr binary(const std::string& sign, ExpressionPtr a, ExpressionPtr b, int line);
  // Counts one level of nesting for the object's lifetime; fails if the tree gets too deep.
  struct Deeper {
    explicit Deeper(Parser& parser);
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };
  void chain(int& length) const;  // adds an operand to a chain, which also counts as a level
  void known(bool is_known, const char* kind, const std::string& name, int line);

  Program& program_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;
  int guarded_ = 0;  // more than 0 in conditions, where unknown names fail only when executed
  std::vector<std::string> tags_;
  std::vector<Statement*> macros_;
  std::unique_ptr<SyntaxError> unknown_;  // error for the first unknown filter or test
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_PARSER_H_
