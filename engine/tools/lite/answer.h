// What a request gives, from the app's thread to the one that waits for it.
#ifndef WHERRY_ENGINE_TOOLS_LITE_ANSWER_H_
#define WHERRY_ENGINE_TOOLS_LITE_ANSWER_H_

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
  // Starts a request. Throws std::runtime_error if the call itself is wrong.
  static std::shared_ptr<Answer> start(wherry_app* app, const std::string& request_json);

  struct Taken {
    std::vector<std::string> json;  // in their order
    bool last;                      // nothing follows
  };
  // Waits until there is something, at most so long.
  bool wait(std::chrono::milliseconds most);
  Taken take();  // what is there
  void abort();  // the last JSON will say so, unless it is there already

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

#endif  // WHERRY_ENGINE_TOOLS_LITE_ANSWER_H_
