// Drops the oldest turns of a conversation that exceeds the context (`truncation: "auto"`).
#ifndef WHERRY_APP_CHAT_TRUNCATION_H_
#define WHERRY_APP_CHAT_TRUNCATION_H_

#include <cstdint>
#include <functional>

#include "app/request/fields.h"

namespace wherry::app {

// The validated fields of a chat, and the number of messages that were dropped from it.
struct Truncated {
  Fields fields;
  int64_t dropped = 0;
};

// Keeps the messages before the first turn and the newest turns, as many as leave room for the
// response: max_tokens, or a quarter of the context if the request sets no limit. A turn begins
// with a message of the user; the last one stays. Without `truncation: "auto"` all messages stay.
//
// context: the maximum number of tokens of prompt and response together. tokens: returns the number
// of prompt tokens of a chat, or any larger number if it exceeds the context.
Truncated truncated(Fields fields, int64_t context,
                    const std::function<int64_t(const Fields& fields)>& tokens);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_TRUNCATION_H_
