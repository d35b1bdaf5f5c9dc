// A fake of the llguidance library for tests; its grammars are lists of texts such as "ab|ac|b".
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "matcher/llguidance.h"

#if defined(_WIN32)
#define FAKE_API extern "C" __declspec(dllexport)
#else
#define FAKE_API extern "C" __attribute__((visibility("default")))
#endif

namespace wherry {

struct LlgTokenizer {
  std::vector<std::string> tokens;
  uint32_t end;
};

struct LlgMatcher {
  const LlgTokenizer* tokenizer;
  std::vector<std::string> texts;
  std::string written;
  std::vector<size_t> lengths;  // lengths of `written` before each token
  std::string error;

  bool begins(const std::string& prefix) const {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return text.compare(0, prefix.size(), prefix) == 0;
    });
  }
  bool complete() const { return std::find(texts.begin(), texts.end(), written) != texts.end(); }
  bool extends() const {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return text.size() > written.size() && text.compare(0, written.size(), written) == 0;
    });
  }
  bool allows(uint32_t token) const {
    if (token == tokenizer->end) return complete();
    const std::string& text = tokenizer->tokens[token];
    return !text.empty() && text[0] != '\xff' && begins(written + text);
  }
};

}  // namespace wherry

using wherry::LlgMatcher;
using wherry::LlgMatcherInit;
using wherry::LlgTokenizer;
using wherry::LlgTokenizerInit;

FAKE_API const char* llg_get_version() { return "llguidance@1.0.0 fake"; }

FAKE_API LlgTokenizer* llg_new_tokenizer_v2(const LlgTokenizerInit* init, char*, size_t) {
  auto* tokenizer = new LlgTokenizer{{}, init->tok_eos};
  const auto* next = reinterpret_cast<const char*>(init->token_bytes);
  for (uint32_t i = 0; i < init->vocab_size; ++i) {
    tokenizer->tokens.emplace_back(next, init->token_lens[i]);
    next += init->token_lens[i];
  }
  return tokenizer;
}

FAKE_API void llg_free_tokenizer(LlgTokenizer* tokenizer) { delete tokenizer; }

FAKE_API void llg_constraint_init_set_defaults(LlgMatcherInit* init,
                                               const LlgTokenizer* tokenizer) {
  init->tokenizer = tokenizer;
}

FAKE_API LlgMatcher* llg_new_matcher(const LlgMatcherInit* init, const char*, const char* text) {
  auto* matcher = new LlgMatcher{init->tokenizer, {""}, "", {}, ""};
  if (std::strchr(text, '(') != nullptr) matcher->error = "no brackets here";
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c == '|') {
      matcher->texts.emplace_back();
    } else {
      matcher->texts.back() += *c;
    }
  }
  return matcher;
}

FAKE_API LlgMatcher* llg_clone_matcher(const LlgMatcher* matcher) {
  return new LlgMatcher(*matcher);
}

FAKE_API void llg_free_matcher(LlgMatcher* matcher) { delete matcher; }

FAKE_API const char* llg_matcher_get_error(LlgMatcher* matcher) {
  return matcher->error.empty() ? nullptr : matcher->error.c_str();
}

FAKE_API size_t llg_matcher_get_mask_byte_size(const LlgMatcher* matcher) {
  return (matcher->tokenizer->tokens.size() + 31) / 32 * 4;
}

FAKE_API int32_t llg_matcher_compute_mask_into(LlgMatcher* matcher, uint32_t* bits, size_t bytes) {
  std::memset(bits, 0, bytes);
  for (uint32_t token = 0; token < matcher->tokenizer->tokens.size(); ++token) {
    if (matcher->allows(token)) bits[token / 32] |= 1u << token % 32;
  }
  return 0;
}

FAKE_API int32_t llg_matcher_consume_token(LlgMatcher* matcher, uint32_t token) {
  if (!matcher->allows(token)) {
    matcher->error = "token not allowed";
    return -1;
  }
  matcher->lengths.push_back(matcher->written.size());
  matcher->written += matcher->tokenizer->tokens[token];
  return 0;
}

FAKE_API int32_t llg_matcher_rollback(LlgMatcher* matcher, size_t tokens) {
  if (tokens > matcher->lengths.size()) return -1;
  for (; tokens > 0; --tokens) {
    matcher->written.resize(matcher->lengths.back());
    matcher->lengths.pop_back();
  }
  return 0;
}

FAKE_API bool llg_matcher_is_accepting(LlgMatcher* matcher) { return matcher->complete(); }

FAKE_API bool llg_matcher_is_stopped(const LlgMatcher* matcher) {
  return !matcher->error.empty() || (matcher->complete() && !matcher->extends());
}
