// A template's text to tokens, with Jinja's rules of white space: trim_blocks and lstrip_blocks, as
// Hugging Face's templates are written for.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_LEXER_H_
#define WHERRY_ENGINE_APP_TEMPLATE_LEXER_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::jinja {

// The template is not valid Jinja.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(const std::string& message, int line) : std::runtime_error(message), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
  kError,  // what follows is no token: `text` says why
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // of a string what it means
  int64_t integer = 0;
  double number = 0;

  bool is(TokenKind k) const { return kind == k; }
  bool is(std::string_view sign) const { return kind == TokenKind::kOperator && text == sign; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
  std::string described() const;  // as Jinja's errors have it
};

// The last token is kEnd or kError.
std::vector<Token> tokenize(std::string_view source);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_LEXER_H_
