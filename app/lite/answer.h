// Passes a request's JSON from the app's thread to the thread that waits for it.
#ifndef WHERRY_APP_LITE_ANSWER_H_
#define WHERRY_APP_LITE_ANSWER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "wherry_app.h"

namespace wherry::lite {

class Answer {
 public:
  // Starts a request. Throws std::runtime_error if the call itself fails.
  static std::shared_ptr<Answer> start(wherry_app* app, const std::string& request_json);

  struct Taken {
    std::vector<std::string> json;  // in order of arrival
    bool last;                      // no further JSON follows
  };
  // Waits for new JSON, at most for this time; returns whether there is any.
  bool wait(std::chrono::milliseconds most);
  Taken take();  // takes the JSON that has arrived
  void abort();  // the last JSON then reports the abort, unless the request ended before

 private:
  explicit Answer(wherry_app* app) : app_(app) {}
  static void on_chunk(void* context, const char* json, size_t length, int last);

  wherry_app* app_;
  int64_t id_ = 0;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> json_;
  bool last_ = false;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_ANSWER_H_
