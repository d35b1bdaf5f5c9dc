#include "app/lite/socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace wherry::lite {

namespace {

constexpr int kMilliseconds = 1000;               // of a second
constexpr std::chrono::milliseconds kDrain{100};  // time for what a client still sends

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;
#endif

bool wait_for(socket_t socket, short events, int milliseconds) {
  pollfd waiting{socket, events, 0};
  int match = 0;
  do {
    match = poll(&waiting, 1, milliseconds);
  } while (match < 0 && errno == EINTR);
  return match > 0;
}

using NameOf = int (*)(int, sockaddr*, socklen_t*);

void find_address(NameOf name_of, socket_t socket, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (name_of(socket, general, &size) != 0) return;
  if (getnameinfo(general, size, host, sizeof host, service, sizeof service,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  ip = host;
  port = std::atoi(service);
}

}  // namespace

Socket::Socket(socket_t socket, int read_seconds, int write_seconds)
    : socket_(socket), read_seconds_(read_seconds), write_seconds_(write_seconds) {}

Socket::~Socket() { close(socket_); }

// Reads what the client still sends, because a socket that is closed with such bytes resets the
// connection, and the client may lose the response.
void Socket::finish() {
  using Clock = std::chrono::steady_clock;
  shutdown(socket_, SHUT_WR);
  const Clock::time_point end = Clock::now() + kDrain;
  for (auto left = kDrain; left.count() > 0;
       left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now())) {
    if (!wait_for(socket_, POLLIN, static_cast<int>(left.count()))) return;
    if (recv(socket_, buffer_, sizeof buffer_, 0) <= 0) return;
  }
}

bool Socket::has_more() const { return is_readable() || wait_for(socket_, POLLIN, 0); }

bool Socket::wait_readable() const {
  return is_readable() || wait_for(socket_, POLLIN, read_seconds_ * kMilliseconds);
}

bool Socket::wait_writable() const {
  return wait_for(socket_, POLLOUT, write_seconds_ * kMilliseconds);
}

bool Socket::is_peer_alive() const {
  if (!wait_for(socket_, POLLIN, 0)) return true;
  char byte = 0;
  return recv(socket_, &byte, 1, MSG_PEEK) > 0;
}

ssize_t Socket::read(char* to, size_t size) {
  if (!is_readable()) {
    if (!wait_readable()) {
      error_ = httplib::Error::Timeout;
      return -1;
    }
    ssize_t n = 0;
    do {
      n = recv(socket_, buffer_, sizeof buffer_, 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
      error_ = n == 0 ? httplib::Error::ConnectionClosed : httplib::Error::Read;
      return n;
    }
    begin_ = 0;
    end_ = static_cast<size_t>(n);
  }
  const size_t taken = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_ + begin_, taken);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Socket::write(const char* from, size_t size) {
  if (!wait_writable()) return -1;
  ssize_t n = 0;
  do {
    n = send(socket_, from, size, kNoSignal);
  } while (n < 0 && errno == EINTR);
  return n;
}

void Socket::get_remote_ip_and_port(std::string& ip, int& port) const {
  find_address(getpeername, socket_, ip, port);
}

void Socket::get_local_ip_and_port(std::string& ip, int& port) const {
  find_address(getsockname, socket_, ip, port);
}

const char* Socket::buffered_data(size_t& size) const {
  size = end_ - begin_;
  return size == 0 ? nullptr : buffer_ + begin_;
}

}  // namespace wherry::lite
