// The requests that a server answers now.
#ifndef WHERRY_ENGINE_TOOLS_LITE_UNDER_WAY_H_
#define WHERRY_ENGINE_TOOLS_LITE_UNDER_WAY_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "tools/lite/answer.h"

namespace wherry::lite {

class UnderWay {
 public:
  // Holds an answer as long as it is wanted; one that is not at its end then is aborted.
  class Held {
   public:
    Held(UnderWay& all, std::shared_ptr<Answer> answer) : all_(all), answer_(std::move(answer)) {
      const std::lock_guard lock(all_.mutex_);
      all_.answers_.insert(answer_);
    }
    ~Held() {
      answer_->abort();
      const std::lock_guard lock(all_.mutex_);
      all_.answers_.erase(answer_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    Answer* operator->() const { return answer_.get(); }

   private:
    UnderWay& all_;
    const std::shared_ptr<Answer> answer_;
  };

  void abort_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& answer : answers_) answer->abort();
  }

  std::atomic<bool> ending = false;  // the server is: it takes no new requests

 private:
  std::mutex mutex_;
  std::set<std::shared_ptr<Answer>> answers_;
};

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_UNDER_WAY_H_
