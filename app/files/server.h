// Fetches files from a server through the app's own HTTP code.
#ifndef WHERRY_APP_FILES_SERVER_H_
#define WHERRY_APP_FILES_SERVER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "app/files/download_error.h"

namespace wherry::app {

// The error for a URL that cannot be fetched.
class Unreachable : public DownloadError {
 public:
  // http_status: the server's HTTP status; 0 if there was no response.
  Unreachable(const std::string& message, int http_status = 0)
      : DownloadError(WHERRY_UNREACHABLE, message), http_status_(http_status) {}
  int http_status() const { return http_status_; }

 private:
  int http_status_;
};

class Server {
 public:
  using Take = std::function<void(const char* data, size_t n)>;

  // first_wait: milliseconds before the first retry, doubled after each retry. go_on: called at
  // intervals during a wait; it throws to cancel.
  Server(const wherry_app_fetcher& fetcher, int64_t first_wait, std::function<void()> go_on)
      : fetcher_(fetcher), first_wait_(first_wait), go_on_(std::move(go_on)) {}

  // Streams the bytes from..size of a file, resuming after a broken connection. Throws Unreachable
  // if the server refuses or five consecutive attempts bring nothing, and any exception of `take`.
  void stream(const std::string& url, int64_t from, int64_t size, const Take& take) const;

  // Returns the content of a small file of at most `most` bytes, in one attempt.
  std::string download(const std::string& url, size_t most) const;

 private:
  void wait(int64_t milliseconds) const;

  const wherry_app_fetcher& fetcher_;
  int64_t first_wait_;
  std::function<void()> go_on_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_SERVER_H_
