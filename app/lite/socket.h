// A connection's socket, as cpp-httplib reads requests from it and writes responses to it.
#ifndef WHERRY_APP_LITE_SOCKET_H_
#define WHERRY_APP_LITE_SOCKET_H_

#include <httplib.h>

#include <string>

namespace wherry::lite {

// Owns a socket. Bytes that were read beyond a request stay for the next one.
class Socket final : public httplib::Stream {
 public:
  // read_seconds, write_seconds: how long a call waits for the client.
  Socket(socket_t socket, int read_seconds, int write_seconds);
  ~Socket() override;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Whether a byte can be read now, or the client has closed the connection.
  bool has_more() const;
  // Ends the connection after a response, which the client then gets whole.
  void finish();

  bool is_readable() const override { return begin_ < end_; }
  bool wait_readable() const override;
  bool wait_writable() const override;
  bool is_peer_alive() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }
  time_t duration() const override { return 0; }  // of clients only
  const char* buffered_data(size_t& size) const override;
  void consume_buffered(size_t size) override { begin_ += size; }

 private:
  static constexpr size_t kBuffer = 4096;  // bytes

  const socket_t socket_;
  const int read_seconds_, write_seconds_;
  size_t begin_ = 0, end_ = 0;  // of the bytes in the buffer that are not read yet
  char buffer_[kBuffer];
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_SOCKET_H_
