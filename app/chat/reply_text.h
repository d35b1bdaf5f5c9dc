// JSON that the writers of responses share.
#ifndef WHERRY_APP_CHAT_REPLY_TEXT_H_
#define WHERRY_APP_CHAT_REPLY_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/response.h"
#include "app/value/value.h"

namespace wherry::app {

// Writes a JSON object field by field. Answers may have millions of log probabilities, which take a
// tenth of the memory as text.
class ObjectText {
 public:
  void raw(std::string_view name, std::string_view json);
  void add(std::string_view name, const Value& value);
  std::string done() &&;

 private:
  std::string text_ = "{";
};

// Writes a JSON list item by item.
class ListText {
 public:
  void raw(std::string_view json);
  std::string done() &&;

 private:
  std::string text_ = "[";
};

// Returns a token as text; a partial character in OpenAI's form `bytes:\xe4\xb8`.
std::string shown(const std::string& piece);
std::string json_number(float value);
// Returns OpenAI's list of a chat's tokens with their log probabilities.
std::string token_logprobs(const std::vector<LoggedToken>& tokens);
Value usage_of(const Totals& totals);
// Returns the timings with the field names of llama.cpp's server; a rate is 0 if its time is 0.
Value timings_of(const Totals& totals);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_REPLY_TEXT_H_
