#include "app/lite/idle.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>
#include <vector>

namespace wherry::lite {

namespace {

constexpr std::chrono::seconds kPatience{5};
// Connections at most; beyond, the one that has waited longest is closed.
constexpr size_t kMost = 512;

}  // namespace

Idle::Idle(std::function<void(Connection)> wake) : wake_(std::move(wake)) {
  if (pipe(pipe_) != 0) throw std::runtime_error("this process may open no more files");
  for (const int end : pipe_) fcntl(end, F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { watch(); });
}

void Idle::keep(Connection connection) {
  Connection closed;  // outside of the lock
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (waiting_.size() == kMost) {
      closed = std::move(waiting_.front().connection);
      waiting_.pop_front();
    }
    waiting_.push_back({std::move(connection), Clock::now() + kPatience});
    signal();
  }
}

void Idle::end() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    signal();
  }
  thread_.join();
  const std::lock_guard lock(mutex_);
  waiting_.clear();
  for (const int end : pipe_) close(end);
}

void Idle::signal() const {
  const char byte = 0;
  while (write(pipe_[1], &byte, 1) < 0 && errno == EINTR) {
  }
}

void Idle::watch() {
  while (true) {
    std::vector<pollfd> polled{{pipe_[0], POLLIN, 0}};
    int milliseconds = -1;
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      for (const Waiting& one : waiting_) polled.push_back({one.connection->socket(), POLLIN, 0});
      if (!waiting_.empty()) {
        const auto left = waiting_.front().until - Clock::now();
        const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
        milliseconds = static_cast<int>(std::max<int64_t>(count + 1, 0));
      }
    }
    poll(polled.data(), polled.size(), milliseconds);
    char bytes[64];
    while (read(pipe_[0], bytes, sizeof bytes) > 0) {
    }
    std::vector<Connection> ready, gone;
    {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      for (auto at = waiting_.begin(); at != waiting_.end();) {
        const socket_t socket = at->connection->socket();
        const bool heard = std::any_of(polled.begin() + 1, polled.end(), [&](const pollfd& one) {
          return one.fd == socket && one.revents != 0;
        });
        if (!heard && at->until > now) {
          ++at;
          continue;
        }
        (heard ? ready : gone).push_back(std::move(at->connection));
        at = waiting_.erase(at);
      }
    }
    gone.clear();
    for (Connection& one : ready) wake_(std::move(one));
  }
}

}  // namespace wherry::lite
