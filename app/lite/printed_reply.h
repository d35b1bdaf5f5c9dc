// Sends a request from the terminal and prints its text as it is generated.
#ifndef WHERRY_APP_LITE_PRINTED_REPLY_H_
#define WHERRY_APP_LITE_PRINTED_REPLY_H_

#include <functional>
#include <string>

#include "app/lite/model.h"

namespace wherry::lite {

struct PrintedReply {
  std::string text;
  std::string finish;       // "stop" or "length"; "" if the user interrupted it
  std::string error, code;  // set if the request failed, else ""
};

// Sends a request and prints the text, and a newline if the text does not end with one. fields: the
// request without "stream"; stopped: polled to see if the user wants to interrupt; on_dropped:
// called before the text with the number of messages that the response leaves out, if it does.
PrintedReply ask(const Model& model, Items fields, const std::function<bool()>& stopped,
                 const std::function<void(int64_t)>& on_dropped = nullptr);

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_PRINTED_REPLY_H_
