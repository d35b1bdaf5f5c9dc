// Splits a template into tokens, with the white-space rules trim_blocks and lstrip_blocks, which
// Hugging Face's templates expect.
#ifndef WHERRY_APP_TEMPLATE_LEXER_H_
#define WHERRY_APP_TEMPLATE_LEXER_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::jinja {

// The error for a template that is not valid Jinja.
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
  kError,  // invalid input; `text` has the message
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // text of the token; for a string token its value
  int64_t integer = 0;
  double number = 0;

  bool is(TokenKind k) const { return kind == k; }
  bool is(std::string_view sign) const { return kind == TokenKind::kOperator && text == sign; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// Splits a template into tokens, of which the last is kEnd or kError.
std::vector<Token> tokenize(std::string_view source);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_LEXER_H_
