// Runs a compiled model from the command line, without Python: takes and prints token
// ids.
//
//   wherry_generate [OPTION VALUE]... LIBRARY WEIGHTS TOKEN...
//
// Decodes greedily; prints the new tokens on one line, and statistics to stderr.
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "programs/runtime.h"
#include "programs/stop_ids.h"
#include "wherry.h"

namespace {

constexpr char kUsage[] =
    "usage: wherry_generate [OPTION VALUE]... LIBRARY WEIGHTS TOKEN...\n"
    "  LIBRARY  compiled library, model.so; system:PREFIX for a model that is linked in\n"
    "  WEIGHTS  compiled folder, with tensor-cache.json\n"
    "  TOKEN    ids of the prompt\n"
    "  --device      that the library is compiled for: cpu, cuda, opencl, vulkan, with :INDEX for\n"
    "                others than the first; default: cpu\n"
    "  --driver      library that drives it, if it is no CPU; default: libwherry_<kind>.so, for\n"
    "                cuda libtvm_runtime_cuda.so, as the linker finds it\n"
    "  --stop        ids that end the text, with commas; default: eos_token_id of WEIGHTS'\n"
    "                generation_config.json and config.json; none: nothing ends it\n"
    "  --runtime     TVM's run time; default: libtvm_runtime.so, as the linker finds it, unless "
    "it\n"
    "                is linked in\n"
    "  --threads     of the kernels; default: all cores\n"
    "  --max-tokens  default: 64\n";

struct Arguments {
  // Path of TVM's runtime; "" means libtvm_runtime.so, unless the program links one.
  std::string runtime;
  int threads = 0;
  int max_tokens = 64;
  std::string device = "cpu", driver;
  std::string stop;  // stop token ids; "" means the model's own
  std::string library, weights;
  std::vector<int32_t> prompt;
};

[[noreturn]] void refuse(const std::string& problem) {
  throw std::runtime_error(problem + "\n" + kUsage);
}

int32_t number(const std::string& text) {
  size_t used = 0;
  int value = -1;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception&) {
  }
  if (value < 0 || used != text.size()) refuse("\"" + text + "\" is not a number from 0");
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments result;
  std::vector<std::string> positional;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      positional.push_back(word);
      continue;
    }
    if (i + 1 == argc) refuse(word + " needs a value, or is not known");
    std::string value = argv[++i];
    if (word == "--runtime") {
      result.runtime = value;
    } else if (word == "--device") {
      result.device = value;
    } else if (word == "--driver") {
      result.driver = value;
    } else if (word == "--stop") {
      result.stop = value;
    } else if (word == "--threads") {
      result.threads = number(value);
    } else if (word == "--max-tokens") {
      result.max_tokens = number(value);
    } else {
      refuse("unknown option " + word);
    }
  }
  if (positional.size() < 3) refuse("a library, weights and at least one token are needed");
  result.library = positional[0];
  result.weights = positional[1];
  for (size_t i = 2; i < positional.size(); ++i) result.prompt.push_back(number(positional[i]));
  return result;
}

void check(int status) {
  if (status != WHERRY_OK) throw std::runtime_error(wherry_last_error());
}

std::vector<int32_t> stop_ids(const Arguments& arguments) {
  if (arguments.stop.empty()) return wherry::stop_ids_of(arguments.weights);
  std::vector<int32_t> ids;
  if (arguments.stop == "none") return ids;
  std::istringstream words(arguments.stop);
  for (std::string word; std::getline(words, word, ',');) ids.push_back(number(word));
  return ids;
}

// Runs steps until the request ends; returns its tokens without the stop token.
std::vector<int32_t> run(wherry_engine* engine) {
  std::vector<int32_t> tokens;
  for (;;) {
    wherry_event event;
    size_t n = 0;
    check(wherry_engine_step(engine, &event, 1, &n));
    if (n == 0) continue;
    if (event.finish == WHERRY_ERROR) throw std::runtime_error(wherry_last_error());
    if (event.token >= 0 && event.finish != WHERRY_STOP) tokens.push_back(event.token);
    if (event.finish != WHERRY_RUNNING) return tokens;
  }
}

void generate(const Arguments& arguments) {
  wherry::open_runtime(arguments.runtime);
  wherry::open_driver(arguments.device, arguments.driver);
  const std::vector<int32_t> stop = stop_ids(arguments);
  std::string options = "{\"threads\": " + std::to_string(arguments.threads) + "}";
  wherry_model* model = nullptr;
  wherry_engine* engine = nullptr;
  check(wherry_model_load(arguments.library.c_str(), arguments.weights.c_str(),
                          arguments.device.c_str(), options.c_str(), &model));
  check(wherry_engine_create(model, nullptr, "{\"max_batch\": 1}", &engine));
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = arguments.max_tokens;
  params.stop_ids = stop.data();
  params.n_stop_ids = stop.size();
  check(wherry_engine_add(engine, 1, arguments.prompt.data(), arguments.prompt.size(), &params));
  std::vector<int32_t> tokens = run(engine);
  wherry_stats stats{};
  stats.size = sizeof stats;
  check(wherry_engine_stats(engine, &stats));
  for (size_t i = 0; i < tokens.size(); ++i) std::cout << (i ? " " : "") << tokens[i];
  std::cout << std::endl;
  std::cerr << tokens.size() << " tokens, " << stats.model_seconds << " s in the model\n";
  check(wherry_engine_destroy(engine));
  check(wherry_model_free(model));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    generate(parse(argc, argv));
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "wherry_generate: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
