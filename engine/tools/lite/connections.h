// A thread for each connection.
#ifndef WHERRY_ENGINE_TOOLS_LITE_CONNECTIONS_H_
#define WHERRY_ENGINE_TOOLS_LITE_CONNECTIONS_H_

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace wherry::lite {

// cpp-httplib's own pool counts a thread as idle until it wakes: of many connections that come at
// once some wait for one that is kept open.
class Connections final : public httplib::TaskQueue {
 public:
  // most: beyond them the next is accepted when one has ended.
  explicit Connections(size_t most) : most_(most) {}

  bool enqueue(std::function<void()> serve) override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return count_ < most_; });
    try {
      std::thread([this, serve = std::move(serve)] {
        serve();
        const std::lock_guard ending(mutex_);
        --count_;
        ended_.notify_all();
      }).detach();
    } catch (const std::system_error&) {  // the system has no more threads: it is closed
      return false;
    }
    ++count_;
    return true;
  }

  void shutdown() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t count_ = 0;
};

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_CONNECTIONS_H_
