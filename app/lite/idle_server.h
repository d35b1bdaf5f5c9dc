// cpp-httplib's server with connections that take a thread only while a request is answered.
#ifndef WHERRY_APP_LITE_IDLE_SERVER_H_
#define WHERRY_APP_LITE_IDLE_SERVER_H_

#include <httplib.h>

#include <memory>
#include <string>

#include "app/lite/connections.h"

namespace wherry::lite {

class IdleServer final : public httplib::Server {
 public:
  // most: the maximum number of requests that are answered at once.
  explicit IdleServer(size_t most) {
    new_task_queue = [this, most] {
      connections_ =
          new Connections(most, [this](const Idle::Connection& connection) { serve(connection); });
      return connections_;
    };
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    serve(std::make_shared<Socket>(socket, static_cast<int>(read_timeout_sec_),
                                   static_cast<int>(write_timeout_sec_)));
    return true;
  }

  // Answers the requests that have arrived.
  void serve(const Idle::Connection& connection) {
    std::string remote, local;
    int remote_port = 0, local_port = 0;
    connection->get_remote_ip_and_port(remote, remote_port);
    connection->get_local_ip_and_port(local, local_port);
    while (connection->has_more()) {
      const bool ending = svr_sock_ == INVALID_SOCKET;
      bool closed = false;
      const bool answered = serve_guarded([&] {
        return process_request(*connection, remote, remote_port, local, local_port, ending, closed,
                               nullptr);
      });
      if (!answered || closed || ending) return connection->finish();
    }
    connections_->keep(connection);
  }

  Connections* connections_ = nullptr;  // of the listening thread
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_IDLE_SERVER_H_
