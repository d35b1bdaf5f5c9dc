// A task queue that runs each request on a thread of its own; idle connections have none.
#ifndef WHERRY_APP_LITE_CONNECTIONS_H_
#define WHERRY_APP_LITE_CONNECTIONS_H_

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "app/lite/idle.h"

namespace wherry::lite {

// Starts a thread for each connection with a request. cpp-httplib's own pool counts a thread as
// idle until it wakes: if many connections arrive at once, some wait behind a keep-alive
// connection.
class Connections final : public httplib::TaskQueue {
 public:
  using Serve = std::function<void(const Idle::Connection&)>;

  // most: the maximum number of threads; further connections wait until one has ended. serve:
  // answers requests of a connection, and keeps it if it is idle.
  Connections(size_t most, Serve serve)
      : most_(most), idle_([this, serve = std::move(serve)](const Idle::Connection& connection) {
          enqueue([serve, connection] { serve(connection); });
        }) {}

  void keep(Idle::Connection connection) { idle_.keep(std::move(connection)); }

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
    idle_.end();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t count_ = 0;
  Idle idle_;  // its thread uses the members above
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_CONNECTIONS_H_
