// Files on a server, through the app's own HTTP.
#ifndef WHERRY_ENGINE_APP_FILES_SERVER_H_
#define WHERRY_ENGINE_APP_FILES_SERVER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "app/files/download_error.h"

namespace wherry::app {

// An address cannot be fetched.
class Unreachable : public DownloadError {
 public:
  // http_status: what the server said; 0: nothing came.
  Unreachable(const std::string& message, int http_status = 0)
      : DownloadError(WHERRY_UNREACHABLE, message), http_status_(http_status) {}
  int http_status() const { return http_status_; }

 private:
  int http_status_;
};

class Server {
 public:
  using Take = std::function<void(const char* data, size_t n)>;

  // first_wait: ms before a connection that broke is tried again; doubled each time.
  // go_on: called now and then while nothing comes; throws to end it.
  Server(const wherry_app_fetcher& fetcher, int64_t first_wait, std::function<void()> go_on)
      : fetcher_(fetcher), first_wait_(first_wait), go_on_(std::move(go_on)) {}

  // Bytes from..size of a file; a connection that breaks is taken up where it broke. Throws
  // Unreachable if the server refuses, or five times in a row nothing came; what `take` throws.
  void stream(const std::string& url, int64_t from, int64_t size, const Take& take) const;

  // A small file, of `most` bytes at most, asked for once.
  std::string whole(const std::string& url, size_t most) const;

 private:
  void wait(int64_t milliseconds) const;

  const wherry_app_fetcher& fetcher_;
  int64_t first_wait_;
  std::function<void()> go_on_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_FILES_SERVER_H_
