#include "sampling/params.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/error.h"

namespace wherry {

namespace {

// Checks numbers against their ranges and collects all problems.
class Ranges {
 public:
  explicit Ranges(Problems& problems) : problems_(problems) {}

  template <typename T>
  void check(bool ok, const char* field, T value, const char* accepted) {
    if (!ok) problems_.add(field, " is ", value, "; accepted is ", accepted);
  }
  void share(const char* field, float x) { check(x > 0 && x <= 1, field, x, "(0, 1]"); }
  void not_negative(const char* field, float x) {
    check(std::isfinite(x) && x >= 0, field, x, ">= 0 and finite");
  }
  void positive(const char* field, float x) {
    check(std::isfinite(x) && x > 0, field, x, "> 0 and finite");
  }
  void at_least(const char* field, int32_t x, int32_t low) {
    if (x < low) problems_.add(field, " is ", x, "; accepted is >= ", low);
  }
  void between(const char* field, int32_t x, int32_t low, int32_t high) {
    if (x < low || x > high) {
      problems_.add(field, " is ", x, "; accepted is ", low, "..", high);
    }
  }
  void pointer(const char* field, const void* p, size_t n) {
    if (n > 0 && p == nullptr) problems_.add(field, " is null");
  }

 private:
  Problems& problems_;
};

void check_numbers(const wherry_params& p, Ranges ranges) {
  ranges.at_least("max_tokens", p.max_tokens, 0);
  ranges.at_least("min_tokens", p.min_tokens, 0);
  ranges.not_negative("temperature", p.temperature);
  ranges.not_negative("dynamic_range", p.dynamic_range);
  ranges.positive("dynamic_exponent", p.dynamic_exponent);
  ranges.share("top_p", p.top_p);
  ranges.at_least("top_k", p.top_k, 0);
  ranges.check(p.min_p >= 0 && p.min_p < 1, "min_p", p.min_p, "[0, 1)");
  ranges.share("typical_p", p.typical_p);
  ranges.not_negative("top_n_sigma", p.top_n_sigma);
  ranges.check(p.xtc_probability >= 0 && p.xtc_probability <= 1, "xtc_probability",
               p.xtc_probability, "[0, 1]");
  ranges.check(p.xtc_threshold > 0 && p.xtc_threshold <= 0.5f, "xtc_threshold", p.xtc_threshold,
               "(0, 0.5]");
  ranges.not_negative("mirostat_tau", p.mirostat_tau);
  ranges.share("mirostat_eta", p.mirostat_eta);
  // Outside of this range, the penalty could turn a finite logit into infinity.
  ranges.check(p.repetition_penalty >= 1e-6f && p.repetition_penalty <= 1e6f, "repetition_penalty",
               p.repetition_penalty, "1e-6..1e6");
  ranges.check(std::fabs(p.presence_penalty) <= 1e30f, "presence_penalty", p.presence_penalty,
               "-1e30..1e30");
  ranges.check(std::fabs(p.frequency_penalty) <= 1e30f, "frequency_penalty", p.frequency_penalty,
               "-1e30..1e30");
  ranges.not_negative("dry_multiplier", p.dry_multiplier);
  ranges.check(std::isfinite(p.dry_base) && p.dry_base >= 1, "dry_base", p.dry_base,
               ">= 1 and finite");
  ranges.at_least("dry_allowed_length", p.dry_allowed_length, 1);
  ranges.at_least("dry_range", p.dry_range, 0);
  ranges.between("top_logprobs", p.top_logprobs, 0, WHERRY_MAX_TOP_LOGPROBS);
  ranges.between("prompt_logprobs", p.prompt_logprobs, -1, WHERRY_MAX_TOP_LOGPROBS);
  ranges.at_least("max_drafts", p.max_drafts, -1);
  ranges.at_least("adapter", p.adapter, 0);
}

void check_arrays(const wherry_params& p, Ranges ranges) {
  ranges.pointer("stop_ids", p.stop_ids, p.n_stop_ids);
  ranges.pointer("bias_ids", p.bias_ids, p.n_bias);
  ranges.pointer("bias_values", p.bias_values, p.n_bias);
  ranges.pointer("allowed", p.allowed, p.n_allowed);
  ranges.pointer("dry_breakers", p.dry_breakers, p.n_dry_breakers);
  ranges.pointer("bad_words", p.bad_words, p.n_bad_words);
  ranges.pointer("bad_word_lengths", p.bad_word_lengths, p.n_bad_words);
  ranges.pointer("prediction", p.prediction, p.n_prediction);
  ranges.pointer("source", p.source, p.n_source);
  ranges.pointer("images", p.images, p.n_images);
}

void copy_bias(const wherry_params& given, int64_t vocab, SamplingParams& result,
               Problems& problems) {
  for (size_t i = 0; i < given.n_bias; ++i) {
    int32_t id = given.bias_ids[i];
    float value = given.bias_values[i];
    if (id < 0 || id >= vocab) {
      problems.add("bias for the token ", id, "; the vocabulary has ", vocab, " of them");
    } else if (std::isnan(value) || value > 1e30f) {
      problems.add("bias of ", value, " for the token ", id, "; accepted is -inf..1e30");
    } else {
      result.bias.emplace_back(id, value);
    }
  }
}

void copy_allowed(const wherry_params& given, int64_t vocab, SamplingParams& result,
                  Problems& problems) {
  if (given.n_allowed == 0) return;
  result.allowed.resize(static_cast<size_t>((vocab + 31) / 32));
  for (size_t i = 0; i < given.n_allowed; ++i) {
    int32_t id = given.allowed[i];
    if (id < 0 || id >= vocab) {
      problems.add("allowed has the token ", id, "; the vocabulary has ", vocab, " of them");
    } else {
      result.allowed[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
    }
  }
}

void copy_bad_words(const wherry_params& given, int64_t vocab, SamplingParams& result,
                    Problems& problems) {
  const int32_t* word = given.bad_words;
  for (size_t i = 0; i < given.n_bad_words; ++i) {
    size_t length = given.bad_word_lengths[i];
    if (length == 0) problems.add("bad word ", i, " has no tokens");
    auto unknown =
        std::find_if(word, word + length, [vocab](int32_t id) { return id < 0 || id >= vocab; });
    if (unknown != word + length) {
      problems.add("bad word ", i, " has the token ", *unknown, "; the vocabulary has ", vocab,
                   " of them");
    }
    result.bad_words.emplace_back(word, word + length);
    word += length;
  }
}

}  // namespace

wherry_params default_params() {
  wherry_params params{};
  const SamplingParams none;
  params.size = sizeof params;
  params.temperature = none.temperature;
  params.dynamic_exponent = none.dynamic_exponent;
  params.top_p = none.top_p;
  params.typical_p = none.typical_p;
  params.xtc_threshold = none.xtc_threshold;
  params.mirostat_eta = none.mirostat_eta;
  params.repetition_penalty = none.repetition_penalty;
  params.dry_base = none.dry_base;
  params.dry_allowed_length = none.dry_allowed_length;
  params.prompt_logprobs = none.prompt_logprobs;
  params.max_drafts = -1;
  return params;
}

wherry_params current_params(const wherry_params& given) {
  // Size of the record in version 2, the smallest that is accepted.
  constexpr size_t kSmallest = offsetof(wherry_params, n_source) + sizeof(size_t);
  if (given.size < kSmallest) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                concat("params.size is ", given.size, "; accepted is ", kSmallest,
                       " or more: call wherry_params_init before setting fields"));
  }
  wherry_params params = default_params();
  std::memcpy(&params, &given, std::min(given.size, sizeof params));
  params.size = sizeof params;
  return params;
}

SamplingParams checked_params(const wherry_params& given, int64_t vocab) {
  const char* const title = "the request's parameters are wrong";
  Problems problems;
  check_numbers(given, Ranges(problems));
  check_arrays(given, Ranges(problems));
  problems.raise(WHERRY_INVALID_ARGUMENT, title);
  SamplingParams result;
  result.max_tokens = given.max_tokens;
  result.min_tokens = given.min_tokens;
  result.stop_ids.insert(given.stop_ids, given.stop_ids + given.n_stop_ids);
  result.temperature = given.temperature;
  result.dynamic_range = given.dynamic_range;
  result.dynamic_exponent = given.dynamic_exponent;
  result.top_p = given.top_p;
  result.top_k = given.top_k;
  result.min_p = given.min_p;
  result.typical_p = given.typical_p;
  result.top_n_sigma = given.top_n_sigma;
  result.xtc_probability = given.xtc_probability;
  result.xtc_threshold = given.xtc_threshold;
  result.mirostat_tau = given.mirostat_tau;
  result.mirostat_eta = given.mirostat_eta;
  result.repetition_penalty = given.repetition_penalty;
  result.presence_penalty = given.presence_penalty;
  result.frequency_penalty = given.frequency_penalty;
  result.dry_multiplier = given.dry_multiplier;
  result.dry_base = given.dry_base;
  result.dry_allowed_length = given.dry_allowed_length;
  result.dry_range = given.dry_range;
  result.dry_breakers.insert(given.dry_breakers, given.dry_breakers + given.n_dry_breakers);
  result.seed = given.seed;
  result.top_logprobs = given.top_logprobs;
  result.prompt_logprobs = given.prompt_logprobs;
  copy_bias(given, vocab, result, problems);
  copy_allowed(given, vocab, result, problems);
  copy_bad_words(given, vocab, result, problems);
  problems.raise(WHERRY_INVALID_ARGUMENT, title);
  return result;
}

}  // namespace wherry
