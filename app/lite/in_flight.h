// Keeps the list of requests that the server is answering.
#ifndef WHERRY_APP_LITE_IN_FLIGHT_H_
#define WHERRY_APP_LITE_IN_FLIGHT_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "app/lite/answer.h"

namespace wherry::lite {

class InFlight {
 public:
  // Owns a response while its client waits; the destructor aborts a response that has not ended.
  class Entry {
   public:
    Entry(InFlight& all, std::shared_ptr<Answer> answer) : all_(all), answer_(std::move(answer)) {
      const std::lock_guard lock(all_.mutex_);
      all_.answers_.insert(answer_);
    }
    ~Entry() {
      answer_->abort();
      const std::lock_guard lock(all_.mutex_);
      all_.answers_.erase(answer_);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    Answer* operator->() const { return answer_.get(); }

   private:
    InFlight& all_;
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

#endif  // WHERRY_APP_LITE_IN_FLIGHT_H_
