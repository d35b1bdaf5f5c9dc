// Writes the response to a request for text: OpenAI's shapes are in reply.h, parts in
// parts_reply.h.
#ifndef WHERRY_APP_CHAT_WRITER_H_
#define WHERRY_APP_CHAT_WRITER_H_

#include <string>
#include <vector>

#include "app/chat/choice.h"
#include "app/chat/response.h"

namespace wherry::app {

class Writer {
 public:
  virtual ~Writer() = default;

  virtual std::vector<std::string> opening() const = 0;  // returns the first chunks of a stream
  virtual std::string chunk(const Delta& delta) const = 0;
  virtual std::string closing(const Totals& totals) const = 0;  // returns the chunk with the usage
  virtual std::string complete(const std::vector<Delta>& choices, const Totals& totals) const = 0;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_WRITER_H_
