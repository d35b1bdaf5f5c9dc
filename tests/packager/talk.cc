// Loads a package's model and sends it a request, as an app in C++ does. Prints the response, a
// line of statistics, and to stderr the memory of the process before loading and its peak while
// loading, in kB.
//
// talk FOLDER PACKED REQUEST
#include <cstdio>
#include <fstream>
#include <future>
#include <string>

#include "wherry_app.h"

static long peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes;
  }
  return -1;
}

static void on_chunk(void* context, const char* json, size_t length, int last) {
  if (last) static_cast<std::promise<std::string>*>(context)->set_value(std::string(json, length));
}

int main(int, char** arguments) {
  const long before = peak();
  const std::string options =
      "{\"threads\": 1, \"max_batch\": 1, \"pack_dir\": \"" + std::string(arguments[2]) + "\"}";
  const std::string request = arguments[3];
  wherry_app* app = nullptr;
  std::promise<std::string> answer;
  int64_t id = 0;
  if (wherry_app_open(arguments[1], options.c_str(), nullptr, &app) != WHERRY_OK) {
    std::fprintf(stderr, "%s\n", wherry_app_last_error());
    return 1;
  }
  std::fprintf(stderr, "%ld %ld\n", before, peak());
  if (wherry_app_start(app, request.data(), request.size(), on_chunk, &answer, &id) != WHERRY_OK) {
    std::fprintf(stderr, "%s\n", wherry_app_last_error());
    return 1;
  }
  std::printf("%s\n", answer.get_future().get().c_str());
  char* stats = nullptr;
  if (wherry_app_stats(app, &stats) == WHERRY_OK) std::printf("%s\n", stats);
  wherry_app_free(stats);
  wherry_app_close(app);
  return 0;
}
