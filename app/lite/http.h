// The server's HTTP routes, which use cpp-httplib.
#ifndef WHERRY_APP_LITE_HTTP_H_
#define WHERRY_APP_LITE_HTTP_H_

#include <memory>
#include <string>

#include "app/lite/guard.h"
#include "app/lite/model.h"

namespace wherry::lite {

class HttpServer {
 public:
  // log: whether to log each request to standard error.
  HttpServer(const Model& model, const Guard& guard, uint64_t max_body, bool log);
  ~HttpServer();

  // Binds the server to an address and returns the port. port: 0 chooses a free port. Throws
  // std::runtime_error if the port is in use.
  int bind(const std::string& host, int port);
  void listen();     // serves requests; returns after `stop`, when all running requests have ended
  void stop();       // makes the server accept no new requests
  void abort_all();  // aborts all running requests

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_HTTP_H_
