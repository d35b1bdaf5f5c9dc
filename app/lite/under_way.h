// Keeps the list of requests that the server is answering.
#ifndef WHERRY_APP_LITE_UNDER_WAY_H_
#define WHERRY_APP_LITE_UNDER_WAY_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "app/lite/answer.h"

namespace wherry::lite {

class UnderWay {
 public:
  // Owns a response while its client waits; the destructor aborts a response that has not ended.
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

  // Whether the server is shutting down and accepts no new requests.
  std::atomic<bool> ending = false;

 private:
  std::mutex mutex_;
  std::set<std::shared_ptr<Answer>> answers_;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_UNDER_WAY_H_
