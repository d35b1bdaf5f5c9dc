// One running request as `Requests` sees it: it takes the core's events and sends JSON.
#ifndef WHERRY_APP_CHAT_RESPONSE_H_
#define WHERRY_APP_CHAT_RESPONSE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "wherry.h"

namespace wherry::app {

// Callback that receives one JSON object; last: no further object follows.
using Listener = std::function<void(const std::string& json, bool last)>;

// Sums of token counts and times over all choices of a request.
struct Totals {
  int64_t prompt = 0, sampled = 0, cached = 0, drafted = 0, accepted = 0, reasoning = 0;
  double queue = 0, prefill = 0, decode = 0;  // seconds, the maximum over all choices
  int64_t longest = 0;                        // output tokens of the longest choice
  double since_first = -1, since_last = -1;  // seconds since the first and the last event; -1: none
  std::string finish;                        // why the first choice that has ended did
};

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
  virtual Totals totals() const = 0;  // of the events so far; any thread may call it
  // Returns JSON for the host of the request: how it was understood.
  virtual std::string about() const = 0;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_RESPONSE_H_
