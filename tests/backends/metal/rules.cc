#include "rules.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::string broken, answer;
std::map<std::string, long> events, objects;

const char* json(const std::map<std::string, long>& counts) {
  std::lock_guard<std::mutex> lock(mutex);
  answer = "{";
  for (const auto& [name, count] : counts) {
    if (count == 0) continue;
    answer += (answer.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(count);
  }
  answer += "}";
  return answer.c_str();
}

// Writes the broken rules to a file at the program's end, if one is named.
struct Report {
  ~Report() {
    const char* path = std::getenv("WHERRY_FAKE_METAL_REPORT");
    if (path != nullptr) std::ofstream(path) << broken;
  }
} report;

}  // namespace

void fake_broken(const char* format, ...) {
  char text[500];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::lock_guard<std::mutex> lock(mutex);
  broken += std::string(text) + "\n";
}

void fake_count(const char* event) {
  std::lock_guard<std::mutex> lock(mutex);
  ++events[event];
}

void fake_live(const char* class_name, int step) {
  std::lock_guard<std::mutex> lock(mutex);
  objects[class_name] += step;
}

const char* fake_metal_broken() {
  std::lock_guard<std::mutex> lock(mutex);
  answer = broken;
  return answer.c_str();
}

const char* fake_metal_events() { return json(events); }

const char* fake_metal_objects() { return json(objects); }
