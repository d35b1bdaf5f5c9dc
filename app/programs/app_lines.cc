// Runs an app over standard input and output, one request or JSON object per line. For tests, and
// for programs that communicate through pipes.
//
//   wherry_app_lines FOLDER [OPTIONS_JSON]
//
// A line that begins with { starts a request; "abort ID", "stats", "trim" and "render {...}" call
// the functions of wherry_app.h. The output lines are "started ID", "chunk ID JSON", "last ID
// JSON", "ok JSON" and "error TEXT". A request with a number before it, as in `7 {...}`, has this
// ID; others are numbered from 1.
#include <iostream>
#include <mutex>
#include <string>

#include "wherry_app.h"

namespace {

std::mutex output;  // guards standard output, because the app's thread also writes lines

void say(const std::string& line) {
  const std::lock_guard lock(output);
  std::cout << line << "\n" << std::flush;
}

// A running request; it is removed at its last JSON object.
struct Request {
  std::string number;
};

void on_chunk(void* context, const char* json, size_t length, int last) {
  auto* request = static_cast<Request*>(context);
  say((last ? "last " : "chunk ") + request->number + " " + std::string(json, length));
  if (last) delete request;
}

void answer(int status, const std::string& text = "") {
  say(status == WHERRY_OK ? "ok " + text : std::string("error ") + wherry_app_last_error());
}

void start(wherry_app* app, const std::string& line) {
  static int64_t started = 0;
  const size_t at = line.find('{');
  const std::string number = at > 0 ? line.substr(0, line.find(' ')) : std::to_string(++started);
  const std::string json = line.substr(at);
  auto* request = new Request{number};
  int64_t id = 0;
  if (wherry_app_start(app, json.data(), json.size(), on_chunk, request, &id) != WHERRY_OK) {
    delete request;
    return answer(WHERRY_INTERNAL);
  }
  say("started " + number + " " + std::to_string(id));
}

void command(wherry_app* app, const std::string& line) {
  if (line.rfind("abort ", 0) == 0)
    return answer(wherry_app_abort(app, std::stoll(line.substr(6))));
  if (line == "trim") return answer(wherry_app_trim(app));
  char* text = nullptr;
  int status = WHERRY_INVALID_ARGUMENT;
  if (line == "stats") {
    status = wherry_app_stats(app, &text);
  } else if (line.rfind("render ", 0) == 0) {
    size_t length = 0;
    status = wherry_app_render(app, line.data() + 7, line.size() - 7, &text, &length);
  } else {
    return start(app, line);
  }
  answer(status, text != nullptr ? text : "");
  wherry_app_free(text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: wherry_app_lines FOLDER [OPTIONS_JSON]\n";
    return 2;
  }
  wherry_app* app = nullptr;
  if (wherry_app_open(argv[1], argc > 2 ? argv[2] : nullptr, nullptr, &app) != WHERRY_OK) {
    std::cerr << "wherry_app_lines: " << wherry_app_last_error() << "\n";
    return 1;
  }
  say("ok open");
  for (std::string line; std::getline(std::cin, line);) {
    if (!line.empty()) command(app, line);
  }
  wherry_app_close(app);
  return 0;
}
