// The server's paths, over cpp-httplib.
#ifndef WHERRY_ENGINE_TOOLS_LITE_HTTP_H_
#define WHERRY_ENGINE_TOOLS_LITE_HTTP_H_

#include <memory>
#include <string>

#include "tools/lite/guard.h"
#include "tools/lite/model.h"

namespace wherry::lite {

class HttpServer {
 public:
  // log: a line for each request on standard error.
  HttpServer(const Model& model, const Guard& guard, uint64_t max_body, bool log);
  ~HttpServer();

  // port: 0 takes a free one. Gives the one that it is. Throws std::runtime_error: it is taken.
  int bind(const std::string& host, int port);
  void listen();     // until `stop`, and until requests under way have ended
  void stop();       // no new requests
  void abort_all();  // those under way end now

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_HTTP_H_
