// Holds connections that wait for their next request, so that they take no thread.
#ifndef WHERRY_APP_LITE_IDLE_H_
#define WHERRY_APP_LITE_IDLE_H_

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "app/lite/socket.h"

namespace wherry::lite {

class Idle {
 public:
  using Connection = std::shared_ptr<Socket>;

  // wake: called, on a thread of this object, with a connection whose client has sent something or
  // has gone. Throws std::runtime_error if the process may open no more files.
  explicit Idle(std::function<void(Connection)> wake);
  ~Idle() { end(); }

  // Takes a connection; it is closed if its client sends nothing for some seconds.
  void keep(Connection connection);
  // Closes all connections, and from now on each that is kept.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Connection connection;
    Clock::time_point until;
  };

  void watch();
  void signal() const;

  const std::function<void(Connection)> wake_;
  std::mutex mutex_;
  std::list<Waiting> waiting_;  // the oldest first
  bool ended_ = false;
  int pipe_[2] = {-1, -1};  // wakes the thread
  std::thread thread_;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_IDLE_H_
