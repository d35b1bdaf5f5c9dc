// Passes the JSON objects of a response from the app's thread to the thread that waits for them.
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
    std::vector<std::string> json;  // JSON objects in order of arrival
    bool last;                      // whether no further JSON follows
  };
  // Waits for new JSON, at most for this time; returns whether any has arrived.
  bool wait(std::chrono::milliseconds most);
  Taken take();  // takes the JSON objects that have arrived
  void abort();  // the last JSON then reports the abort, unless the request had ended before

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
