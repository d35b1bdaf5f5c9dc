#include "app/files/server.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "support/error.h"

// One HTTP response while the app's HTTP code delivers it. Exceptions are stored, and rethrown
// after that code has returned.
struct wherry_app_answer {
  const wherry::app::Server::Take& take;
  int64_t from;  // requested offset in bytes
  int64_t skip;  // bytes to discard if the server ignores ranges
  int status = 0;
  std::string failure;
  std::exception_ptr thrown;

  bool good() const { return status >= 200 && status < 300; }
};

int wherry_app_answer_status(wherry_app_answer* answer, int status) {
  answer->status = status;
  answer->skip = status == 206 ? 0 : answer->from;
  return answer->good() ? 0 : 1;
}

int wherry_app_answer_bytes(wherry_app_answer* answer, const void* data, size_t n) {
  if (!answer->good() || answer->thrown) return 1;
  const auto skipped = std::min<int64_t>(answer->skip, static_cast<int64_t>(n));
  answer->skip -= skipped;
  try {
    if (static_cast<size_t>(skipped) < n) {
      answer->take(static_cast<const char*>(data) + skipped, n - static_cast<size_t>(skipped));
    }
    return 0;
  } catch (...) {
    answer->thrown = std::current_exception();
    return 1;
  }
}

void wherry_app_answer_failed(wherry_app_answer* answer, const char* reason) {
  answer->failure = reason != nullptr && *reason != '\0' ? reason : "the connection failed";
}

namespace wherry::app {

namespace {

constexpr int kAttempts = 5;  // upper bound on consecutive attempts without any data
// Milliseconds between polls during a wait, so that a cancel takes effect soon.
constexpr int64_t kSliceMs = 50;

// Receives a file from an offset on, with one HTTP request.
void one_pass(const wherry_app_fetcher& fetcher, const std::string& url, int64_t from,
              const Server::Take& take) {
  wherry_app_answer answer{take, from, 0, 0, "", nullptr};
  fetcher.fetch(fetcher.context, url.c_str(), from, &answer);
  if (answer.thrown) std::rethrow_exception(answer.thrown);
  if (answer.status != 0 && !answer.good()) {
    throw Unreachable(concat(url, " cannot be fetched: HTTP ", answer.status), answer.status);
  }
  if (!answer.failure.empty()) throw Unreachable(url + " cannot be fetched: " + answer.failure);
  if (answer.status == 0) throw Unreachable(url + " cannot be fetched: there was no answer");
}

// Whether the HTTP status makes a retry pointless.
bool is_final(int status) {
  return status >= 400 && status < 500 && status != 408 && status != 425 && status != 429;
}

// The exception that ends a transfer when all requested bytes have arrived, even if the server
// sends more.
class Enough {};

}  // namespace

void Server::stream(const std::string& url, int64_t from, int64_t size, const Take& take) const {
  int64_t at = from;
  int failures = 0;
  const Take counted = [&](const char* data, size_t n) {
    if (at == size) throw Enough();
    const auto count = static_cast<size_t>(std::min<int64_t>(size - at, static_cast<int64_t>(n)));
    take(data, count);
    at += static_cast<int64_t>(count);
    failures = 0;
  };
  while (at < size) {
    go_on_();
    try {
      one_pass(fetcher_, url, at, counted);
      if (at < size) throw Unreachable(concat(url, " ended after ", at, " of ", size, " bytes"));
    } catch (const Enough&) {
      return;
    } catch (const Unreachable& error) {
      if (at == size) return;
      go_on_();  // throws if the caller cancelled, because a cancelled fetch fails, too
      if (++failures >= kAttempts || is_final(error.http_status())) throw;
      wait(first_wait_ << (failures - 1));
    }
  }
}

std::string Server::download(const std::string& url, size_t most) const {
  std::string text;
  go_on_();
  try {
    one_pass(fetcher_, url, 0, [&](const char* data, size_t n) {
      if (n > most - text.size()) {
        throw DownloadError(WHERRY_DAMAGED, concat(url, " has more than ", most, " bytes"));
      }
      text.append(data, n);
    });
  } catch (const Unreachable&) {
    go_on_();
    throw;
  }
  return text;
}

void Server::wait(int64_t milliseconds) const {
  for (int64_t left = milliseconds; left > 0; left -= kSliceMs) {
    go_on_();
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(left, kSliceMs)));
  }
}

}  // namespace wherry::app
