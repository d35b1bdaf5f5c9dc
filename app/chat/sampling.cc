#include "app/chat/sampling.h"

#include <algorithm>
#include <set>

#include "app/request/request_error.h"
#include "support/blake2b.h"

namespace wherry::app {

namespace {

constexpr size_t kMostBadWords = size_t{1} << 16;            // characters of all bad_words
constexpr const char* kBreakers[] = {"\n", ":", "\"", "*"};  // llama.cpp's default DRY breakers

// Returns the request's value of a field, else that of generation_config.json, else the neutral
// value.
double chosen(const Fields& fields, const Abilities& model, const char* name, double otherwise,
              bool always = false) {
  if (const auto given = fields.number(name)) return *given;
  const Fields defaults(model.defaults);
  const Value* sampled = defaults.find("do_sample");
  if (!always && sampled != nullptr && !json::truth(*sampled)) return otherwise;
  return defaults.number(name).value_or(otherwise);
}

void set_probabilities(const Fields& fields, const Abilities& model, wherry_params& params) {
  const auto real = [&](const char* name, double otherwise) {
    const double value = fields.number(name).value_or(0);
    return static_cast<float>(value == 0 ? otherwise : value);  // 0 means the default
  };
  const bool greedy = fields.has("do_sample") && !fields.truth("do_sample");
  params.temperature = greedy ? 0 : static_cast<float>(chosen(fields, model, "temperature", 1));
  params.dynamic_range = real("dynatemp_range", 0);
  params.dynamic_exponent = real("dynatemp_exponent", 1);
  params.top_p = static_cast<float>(chosen(fields, model, "top_p", 1));
  params.top_k = std::max(static_cast<int32_t>(chosen(fields, model, "top_k", 0)), 0);
  params.min_p = static_cast<float>(chosen(fields, model, "min_p", 0));
  params.typical_p = static_cast<float>(chosen(fields, model, "typical_p", 1));
  params.top_n_sigma = std::max(real("top_n_sigma", 0), 0.0f);
  const double threshold = fields.number("xtc_threshold").value_or(0.1);
  params.xtc_probability = threshold <= 0.5 ? real("xtc_probability", 0) : 0;
  params.xtc_threshold = static_cast<float>(std::min(threshold, 0.5));
  params.mirostat_tau = fields.truth("mirostat") ? real("mirostat_tau", 5) : 0;
  params.mirostat_eta = real("mirostat_eta", 0.1);
}

// Returns the tokens whose text contains one of these strings, except special tokens.
std::vector<int32_t> tokens_with(const Tokenizer& tokenizer,
                                 const std::vector<std::string>& texts) {
  std::vector<int32_t> result;
  for (int32_t id = 0; id <= tokenizer.largest_id(); ++id) {
    if (!tokenizer.is_text(id)) continue;
    const std::string piece = tokenizer.piece(id);
    const bool matched = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return piece.find(text) != piece.npos;
    });
    if (matched) result.push_back(id);
  }
  return result;
}

void set_penalties(const Fields& fields, const Abilities& model, Sampling& result) {
  wherry_params& params = result.params;
  const auto real = [&](const char* name) {
    return static_cast<float>(fields.number(name).value_or(0));
  };
  params.repetition_penalty =
      static_cast<float>(chosen(fields, model, "repetition_penalty", 1, true));
  params.presence_penalty = real("presence_penalty");
  params.frequency_penalty = real("frequency_penalty");
  const int64_t last = fields.integer("dry_penalty_last_n").value_or(-1);
  params.dry_multiplier = last != 0 ? real("dry_multiplier") : 0;
  params.dry_base = static_cast<float>(fields.number("dry_base").value_or(1.75));
  params.dry_allowed_length =
      static_cast<int32_t>(fields.integer("dry_allowed_length").value_or(2));
  params.dry_range = static_cast<int32_t>(std::max<int64_t>(last, 0));
  if (params.dry_multiplier == 0) return;
  std::vector<std::string> texts(std::begin(kBreakers), std::end(kBreakers));
  if (const Value* given = fields.find("dry_sequence_breakers")) {
    texts.clear();
    for (const Value& text : given->items()) texts.push_back(text.text());
  }
  result.breakers = tokens_with(*model.tokenizer, texts);
}

void check_id(const char* field, int64_t id, const Abilities& model) {
  if (id < model.vocab_size) return;
  throw RequestError(std::string(field) + " names token " + std::to_string(id) +
                         "; ids go from 0 to " + std::to_string(model.vocab_size - 1),
                     field);
}

void set_ids(const Fields& fields, const Abilities& model, Sampling& result) {
  if (const Value* biases = fields.find("logit_bias")) {
    for (const auto& [id, bias] : biases->dict().items) {
      check_id("logit_bias", id.integer(), model);
      result.bias_ids.push_back(static_cast<int32_t>(id.integer()));
      result.bias_values.push_back(static_cast<float>(bias.number()));
    }
  }
  if (const Value* allowed = fields.find("allowed_token_ids")) {
    std::set<int64_t> seen;
    for (const Value& id : allowed->items()) {
      check_id("allowed_token_ids", id.integer(), model);
      if (seen.insert(id.integer()).second) {
        result.allowed.push_back(static_cast<int32_t>(id.integer()));
      }
    }
  }
  if (!fields.truth("ignore_eos")) result.stop_ids = model.eos_ids;
  if (const Value* stops = fields.find("stop_token_ids")) {
    std::set<int32_t> seen(result.stop_ids.begin(), result.stop_ids.end());
    for (const Value& id : stops->items()) {
      check_id("stop_token_ids", id.integer(), model);
      const auto token = static_cast<int32_t>(id.integer());
      if (seen.insert(token).second) result.stop_ids.push_back(token);
    }
  }
}

// Bans each word both at the start of a text and after a space.
void set_bad_words(const Fields& fields, const Abilities& model, Sampling& result) {
  const Value* words = fields.find("bad_words");
  if (words == nullptr) return;
  size_t size = 0;
  for (const Value& word : words->items()) size += word.chars();
  if (size > kMostBadWords) {
    throw RequestError("bad_words have " + std::to_string(size) + " characters in all; at most " +
                           std::to_string(kMostBadWords) + " are accepted",
                       "bad_words");
  }
  std::set<std::vector<int32_t>> seen;
  for (const Value& word : words->items()) {
    const std::string& text = word.text();
    const size_t start = std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size());
    for (const std::string& form : {text, " " + text.substr(start)}) {
      const std::vector<int32_t> ids = model.tokenizer->encode(form, false);
      if (ids.empty() || !seen.insert(ids).second) continue;
      result.bad_words.insert(result.bad_words.end(), ids.begin(), ids.end());
      result.bad_word_lengths.push_back(ids.size());
    }
  }
}

}  // namespace

wherry_params Sampling::record() const {
  wherry_params result = params;
  result.stop_ids = stop_ids.data();
  result.n_stop_ids = stop_ids.size();
  result.dry_breakers = breakers.data();
  result.n_dry_breakers = breakers.size();
  result.bias_ids = bias_ids.data();
  result.bias_values = bias_values.data();
  result.n_bias = bias_ids.size();
  result.allowed = allowed.data();
  result.n_allowed = allowed.size();
  result.bad_words = bad_words.data();
  result.bad_word_lengths = bad_word_lengths.data();
  result.n_bad_words = bad_word_lengths.size();
  result.prediction = prediction.data();
  result.n_prediction = prediction.size();
  return result;
}

Sampling sampling_of(const Fields& fields, const Abilities& model, int64_t max_tokens) {
  Sampling sampling;
  wherry_params_init(&sampling.params);
  set_ids(fields, model, sampling);
  const int64_t fewest = fields.integer("min_tokens").value_or(0);
  if (max_tokens > 0 && fewest > max_tokens) {
    throw RequestError("min_tokens is " + std::to_string(fewest) + "; the output has at most " +
                           std::to_string(max_tokens),
                       "min_tokens");
  }
  sampling.params.max_tokens = static_cast<int32_t>(max_tokens);
  sampling.params.min_tokens = static_cast<int32_t>(fewest);
  set_probabilities(fields, model, sampling.params);
  set_penalties(fields, model, sampling);
  set_bad_words(fields, model, sampling);
  sampling.params.priority = static_cast<int32_t>(-fields.integer("priority").value_or(0));
  const std::string user = fields.text("safety_identifier");
  sampling.params.user = number_of(user.empty() ? fields.text("user") : user);
  sampling.params.salt = number_of(fields.text("cache_salt"));
  sampling.params.max_drafts = static_cast<int32_t>(fields.integer("max_drafts").value_or(-1));
  sampling.params.prompt_logprobs =
      static_cast<int32_t>(fields.integer("prompt_logprobs").value_or(-1));
  if (fields.has("prompt_logprobs") && fields.truth("stream")) {
    throw RequestError("prompt_logprobs are not streamed", "prompt_logprobs");
  }
  return sampling;
}

uint64_t number_of(const std::string& name) {
  if (name.empty()) return 0;
  uint64_t result = 0;
  const Blake2b::Digest digest = Blake2b().text(name).finish();
  for (size_t i = 0; i < 8; ++i) result = result << 8 | digest[i];
  return result;
}

}  // namespace wherry::app
