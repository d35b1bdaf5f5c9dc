// Loads llguidance's C interface at run time, so that the core does not depend on it without
// structured output. The records are those of its llguidance.h, version 1; llguidance is MIT
// licensed.
#ifndef WHERRY_ENGINE_MATCHER_LLGUIDANCE_H_
#define WHERRY_ENGINE_MATCHER_LLGUIDANCE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

constexpr char kLlgNoise[] = "\n<non-verbose/>";  // suffix of llguidance's error texts, to remove

struct LlgTokenizer;
struct LlgMatcher;

struct LlgLimits {
  size_t max_items_in_row;
  uint64_t initial_lexer_fuel;
  uint64_t step_lexer_fuel;
  size_t step_max_items;
  size_t max_lexer_states;
  size_t max_grammar_size;
  bool precompute_large_lexemes;
  bool verbose_errors;
};

struct LlgMatcherInit {
  const LlgTokenizer* tokenizer;
  uint32_t log_buffer_level;
  uint32_t log_stderr_level;
  bool ff_tokens_ok;
  bool backtrack_ok;
  LlgLimits limits;
  uint64_t later_versions[16];  // zeros: fields that later versions of this record may add
};

struct LlgTokenizerInit {
  size_t struct_size;
  uint32_t vocab_size;
  uint32_t tok_eos;
  const uint32_t* token_lens;  // [vocab_size]
  const uint8_t* token_bytes;
  const char* tokenizer_json;
  bool tokenize_assumes_string;
  size_t (*tokenize_fn)(const void*, const uint8_t*, size_t, uint32_t*, size_t);
  bool use_approximate_greedy_tokenize_fn;
  const void* tokenize_user_data;
  const char* const* slices;
  const uint32_t* tok_eos_extra;
  uint32_t tok_eos_extra_count;
};

// llguidance's functions that the core uses, declared as in llguidance.h.
struct Llguidance {
  const char* (*version)();
  LlgTokenizer* (*new_tokenizer)(const LlgTokenizerInit*, char* error, size_t error_size);
  void (*free_tokenizer)(LlgTokenizer*);
  void (*set_defaults)(LlgMatcherInit*, const LlgTokenizer*);  // sets every field to its default
  LlgMatcher* (*new_matcher)(const LlgMatcherInit*, const char* kind, const char* text);
  LlgMatcher* (*clone_matcher)(const LlgMatcher*);
  void (*free_matcher)(LlgMatcher*);
  const char* (*get_error)(LlgMatcher*);  // returns null if there is no error
  size_t (*mask_bytes)(const LlgMatcher*);
  int32_t (*compute_mask)(LlgMatcher*, uint32_t*, size_t bytes);
  int32_t (*consume_token)(LlgMatcher*, uint32_t);
  int32_t (*rollback)(LlgMatcher*, size_t tokens);
  bool (*is_accepting)(LlgMatcher*);
  bool (*is_stopped)(const LlgMatcher*);
};

// Opens the llguidance library at `path`, which stays open until the process ends. Throws
// WHERRY_NOT_FOUND if it cannot be opened, WHERRY_INCOMPATIBLE if it is another library or version.
Llguidance open_llguidance(const std::string& path);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MATCHER_LLGUIDANCE_H_
