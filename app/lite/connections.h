// A task queue that runs each connection on its own thread.
#ifndef WHERRY_APP_LITE_CONNECTIONS_H_
#define WHERRY_APP_LITE_CONNECTIONS_H_

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

namespace wherry::lite {

// Starts a thread for each connection. cpp-httplib's own pool counts a thread as idle until it
// wakes: if many connections arrive at once, some wait behind a keep-alive connection.
class Connections final : public httplib::TaskQueue {
 public:
  // most: the maximum number of connections; further ones wait until one has ended.
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
    } catch (const std::system_error&) {
      // The system starts no more threads, so the connection is closed.
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

#endif  // WHERRY_APP_LITE_CONNECTIONS_H_
