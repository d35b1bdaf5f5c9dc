// Samples rows from standard input, for tests/engine/test_sampling.py.
//
// Words, in any order: the fields of wherry_params (`temperature 0.7`; arrays with their length
// first, `stop_ids 2 7 9`; `bad_word 2 7 9` once for each), `prompt`, `output` and `mask` (arrays),
// `logits` (all rows, one after the other), `rows` (how many), and `run`, which samples a token
// from each row, appends it to the output for the next row, and finally resets all fields. It
// prints one line for each row: the token, its logprob, mirostat's mu after it, the kept ranks
// (begin and end) and the ids of those ranks, or no ids if no stage cut the vocabulary's tail.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/error.h"
#include "testing/sampling.h"

namespace wherry {
namespace {

const std::map<std::string, float wherry_params::*> kFloats = {
    {"temperature", &wherry_params::temperature},
    {"dynamic_range", &wherry_params::dynamic_range},
    {"dynamic_exponent", &wherry_params::dynamic_exponent},
    {"top_p", &wherry_params::top_p},
    {"min_p", &wherry_params::min_p},
    {"typical_p", &wherry_params::typical_p},
    {"top_n_sigma", &wherry_params::top_n_sigma},
    {"xtc_probability", &wherry_params::xtc_probability},
    {"xtc_threshold", &wherry_params::xtc_threshold},
    {"mirostat_tau", &wherry_params::mirostat_tau},
    {"mirostat_eta", &wherry_params::mirostat_eta},
    {"repetition_penalty", &wherry_params::repetition_penalty},
    {"presence_penalty", &wherry_params::presence_penalty},
    {"frequency_penalty", &wherry_params::frequency_penalty},
    {"dry_multiplier", &wherry_params::dry_multiplier},
    {"dry_base", &wherry_params::dry_base},
};
const std::map<std::string, int32_t wherry_params::*> kInts = {
    {"min_tokens", &wherry_params::min_tokens},
    {"top_k", &wherry_params::top_k},
    {"dry_allowed_length", &wherry_params::dry_allowed_length},
    {"dry_range", &wherry_params::dry_range},
};

template <typename T>
T read_one() {
  std::string word;
  if (!(std::cin >> word)) throw Error(WHERRY_INVALID_ARGUMENT, "the input ends in a field");
  if constexpr (std::is_same_v<T, float>)
    return std::strtof(word.c_str(), nullptr);  // std::strtof also reads "inf", which >> does not
  return static_cast<T>(std::stoull(word));
}

template <typename T>
std::vector<T> read_array() {
  std::vector<T> values(read_one<size_t>());
  for (T& value : values) value = read_one<T>();
  return values;
}

struct Case {
  Case() { wherry_params_init(&params); }

  bool read(const std::string& word);
  void run();

  wherry_params params;
  std::map<std::string, std::vector<int32_t>> ids;
  std::vector<float> bias_values, logits;
  std::vector<int32_t> bad_words;
  std::vector<size_t> bad_word_lengths;
  std::vector<uint32_t> mask;
  size_t rows = 1;
};

bool Case::read(const std::string& word) {
  if (auto field = kFloats.find(word); field != kFloats.end()) {
    params.*field->second = read_one<float>();
  } else if (auto number = kInts.find(word); number != kInts.end()) {
    params.*number->second = read_one<int32_t>();
  } else if (word == "seed") {
    params.seed = read_one<uint64_t>();
  } else if (word == "rows") {
    rows = read_one<size_t>();
  } else if (word == "bias_values") {
    bias_values = read_array<float>();
  } else if (word == "logits") {
    logits = read_array<float>();
  } else if (word == "mask") {
    mask = read_array<uint32_t>();
  } else if (word == "bad_word") {
    std::vector<int32_t> tokens = read_array<int32_t>();
    bad_words.insert(bad_words.end(), tokens.begin(), tokens.end());
    bad_word_lengths.push_back(tokens.size());
  } else if (word == "prompt" || word == "output" || word == "stop_ids" || word == "bias_ids" ||
             word == "dry_breakers") {
    ids[word] = read_array<int32_t>();
  } else {
    return false;
  }
  return true;
}

void print(const Sample& sample, testing::SampledRequest& request) {
  std::printf("%d %.9g %.17g", sample.token, static_cast<double>(sample.logprob),
              request.state().mu());
  if (request.input().params.temperature == 0) {
    std::printf(" 0 1 %d\n", sample.token);
    return;
  }
  Truncation& kept = request.sampler().kept();
  std::printf(" %lld %lld", static_cast<long long>(kept.begin()),
              static_cast<long long>(kept.end()));
  if (!kept.has_tail()) {
    for (int64_t i = kept.begin(); i < kept.end(); ++i) std::printf(" %d", kept.id(i));
  }
  std::printf("\n");
}

void Case::run() {
  params.stop_ids = ids["stop_ids"].data();
  params.n_stop_ids = ids["stop_ids"].size();
  params.dry_breakers = ids["dry_breakers"].data();
  params.n_dry_breakers = ids["dry_breakers"].size();
  params.bias_ids = ids["bias_ids"].data();
  params.bias_values = bias_values.data();
  params.n_bias = bias_values.size();
  params.bad_words = bad_words.data();
  params.bad_word_lengths = bad_word_lengths.data();
  params.n_bad_words = bad_word_lengths.size();
  auto vocab = static_cast<int64_t>(logits.size() / rows);
  testing::SampledRequest request(params, vocab, ids["prompt"], ids["output"]);
  for (size_t row = 0; row < rows; ++row) {
    const float* x = logits.data() + row * static_cast<size_t>(vocab);
    Sample sample = request.sample(x, vocab, mask.empty() ? nullptr : mask.data());
    request.append(sample);
    print(sample, request);
  }
}

int run_all() {
  auto current = std::make_unique<Case>();
  for (std::string word; std::cin >> word;) {
    if (word == "run") {
      current->run();
      current = std::make_unique<Case>();
    } else if (!current->read(word)) {
      std::fprintf(stderr, "unknown field %s\n", word.c_str());
      return 2;
    }
  }
  return 0;
}

}  // namespace
}  // namespace wherry

int main() {
  try {
    return wherry::run_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
