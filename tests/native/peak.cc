// Loads a model that is linked in, decodes greedily, prints the tokens; and to stderr the memory of
// the process before, and at its peak while it loaded, in kB.
//
//   peak SYMBOLS FOLDER PACKED
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "wherry.h"

static int check(int status) {
  if (status != WHERRY_OK) std::fprintf(stderr, "%s\n", wherry_last_error());
  return status;
}

static long peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes;
  }
  return -1;
}

int main(int, char** arguments) {
  const long before = peak();
  const std::string library = std::string("system:") + arguments[1];
  const std::string options =
      "{\"threads\": 1, \"pack_dir\": \"" + std::string(arguments[3]) + "\"}";
  wherry_model* model = nullptr;
  wherry_engine* engine = nullptr;
  if (check(wherry_model_load(library.c_str(), arguments[2], "cpu", options.c_str(), &model)) ||
      check(wherry_engine_create(model, nullptr, "{\"max_batch\": 1}", &engine))) {
    return 1;
  }
  std::fprintf(stderr, "%ld %ld\n", before, peak());
  const int32_t prompt[] = {3, 10, 17, 24, 31, 38, 45, 52};
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = 24;
  if (check(wherry_engine_add(engine, 1, prompt, 8, &params))) return 1;
  for (int finish = WHERRY_RUNNING; finish == WHERRY_RUNNING;) {
    wherry_event event;
    size_t n = 0;
    if (check(wherry_engine_step(engine, &event, 1, &n))) return 1;
    if (n == 0) continue;
    finish = event.finish;
    std::printf("%d ", event.token);
  }
  wherry_engine_destroy(engine);
  wherry_model_free(model);
  return 0;
}
