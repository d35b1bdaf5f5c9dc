// Implements `wherry-lite serve`, which serves the model over HTTP until a signal arrives.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "app/lite/commands.h"
#include "app/lite/http.h"
#include "app/lite/usage.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace wherry::lite {

namespace {

constexpr int64_t kPort = 8000;
constexpr int64_t kMaxBody = int64_t{1} << 20, kMaxBodyWithImages = int64_t{16} << 20;  // bytes
// Milliseconds that running requests get after the first signal.
constexpr int kDrainMilliseconds = 30000;

std::string key_of(const Arguments& typed) {
  const char* key = std::getenv("WHERRY_API_KEY");
  return typed.text("api-key", key != nullptr ? key : "");
}

int port_of(const Arguments& typed) {
  const int64_t port = typed.number("port", kPort);
  if (port < 0 || port > 65535) throw UsageError("--port takes a number from 0 to 65535");
  return static_cast<int>(port);
}

std::string host_of(const Arguments& typed, bool has_key) {
  std::string host = typed.text("host", "127.0.0.1");
  if (!has_key && !is_loopback(host)) {
    throw UsageError("host is '" + host +
                     "', which other machines may reach, and there is no API key. Give one "
                     "(--api-key or WHERRY_API_KEY), or listen on 127.0.0.1");
  }
  if (host[0] == '[') host = host.substr(1, host.find(']') - 1);
  return host;
}

// A pipe that wakes the main thread; signal handlers and the server's thread write to it.
int wake[2] = {-1, -1};

void wake_up(int = 0) {
  const char byte = 0;
  while (write(wake[1], &byte, 1) < 0 && errno == EINTR) {
  }
}

// Waits for a write to the wake-up pipe, at most for this time; -1 waits without a limit.
void wait_for_wake(int milliseconds) {
  pollfd waiting{wake[0], POLLIN, 0};
  while (poll(&waiting, 1, milliseconds) < 0 && errno == EINTR) {
  }
  char byte = 0;
  if (waiting.revents != 0 && read(wake[0], &byte, 1) < 0) return;
}

void hear_signals() {
  if (pipe(wake) != 0) throw std::runtime_error("this process may open no more files");
  struct sigaction action = {};
  action.sa_handler = wake_up;
  action.sa_flags = SA_RESTART;
  for (int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

// Serves requests until a signal arrives; returns when the server has stopped.
void serve_until_signal(HttpServer& server) {
  std::atomic<bool> ended = false;
  std::thread listener([&] {
    server.listen();
    ended = true;
    wake_up();
  });
  wait_for_wake(-1);
  server.stop();
  if (!ended) wait_for_wake(kDrainMilliseconds);  // ends early at another signal
  server.abort_all();
  listener.join();
}

}  // namespace

int serve(const Arguments& typed) {
  const std::string key = key_of(typed);
  const std::string host = host_of(typed, !key.empty());
  const int port = port_of(typed);
#ifdef __GLIBC__
  // Limits glibc's arenas, which would otherwise grow with the number of connection threads.
  mallopt(M_ARENA_MAX, 2);
#endif
  const Model model(typed);
  const int64_t most = model.reads_images() ? kMaxBodyWithImages : kMaxBody;
  const auto max_body = static_cast<uint64_t>(typed.number("max-body", most));
  const Guard guard(key, typed.hosts, max_body);
  HttpServer server(model, guard, max_body, !typed.flag("quiet"));
  const int bound = server.bind(host, port);
  const std::string shown = host.find(':') == host.npos ? host : "[" + host + "]";
  hear_signals();
  std::fprintf(stderr, "Serving %s at http://%s:%d/v1\n", model.name().c_str(), shown.c_str(),
               bound);
  serve_until_signal(server);
  return EXIT_SUCCESS;
}

}  // namespace wherry::lite
