// One running request as `Requests` sees it: it takes the core's events and sends JSON.
#ifndef WHERRY_APP_CHAT_RESPONSE_H_
#define WHERRY_APP_CHAT_RESPONSE_H_

#include <cstddef>
#include <functional>
#include <string>

#include "wherry.h"

namespace wherry::app {

// Callback that receives one JSON object; last: no further object follows.
using Listener = std::function<void(const std::string& json, bool last)>;

// The state of one running request; not thread-safe. The core runs each of its jobs as a request.
class Response {
 public:
  virtual ~Response() = default;

  virtual void open() = 0;  // sends the first chunks of a stream
  // Handles an event of a job. Throws Failed.
  virtual void push(size_t job, const wherry_event& event, const std::string& error) = 0;
  virtual void flush() = 0;  // sends the output that was added since the last call
  virtual bool done() const = 0;
  virtual bool ended(size_t job) const = 0;
  virtual bool must_abort(
      size_t job) const = 0;  // whether a job ended without the core's knowledge
  virtual void fail(const std::string& error_json) = 0;  // sends the error as the last JSON object
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_RESPONSE_H_
