#include "abi/guard.h"
#include "matcher/grammar.h"
#include "matcher/vocabulary.h"

struct wherry_vocabulary {
  std::shared_ptr<const wherry::Vocabulary> vocabulary;
};

struct wherry_grammar {
  wherry::Grammar grammar;
};

using wherry::guard;
using wherry::required;

extern "C" {

int wherry_vocabulary_create(const char* library, const uint8_t* bytes, const uint32_t* lengths,
                             size_t n, wherry_vocabulary** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(library, "library");
    required(bytes, "bytes");
    required(lengths, "lengths");
    auto created = std::make_shared<const wherry::Vocabulary>(library, bytes, lengths, n);
    *out = new wherry_vocabulary{std::move(created)};
  });
}

int wherry_vocabulary_free(wherry_vocabulary* vocabulary) {
  return guard([&] { delete vocabulary; });
}

int wherry_grammar_compile(const wherry_vocabulary* vocabulary, const char* kind, const char* text,
                           wherry_grammar** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(vocabulary, "vocabulary");
    required(kind, "kind");
    required(text, "text");
    *out = new wherry_grammar{{vocabulary->vocabulary, kind, text}};
  });
}

int wherry_grammar_free(wherry_grammar* grammar) {
  return guard([&] { delete grammar; });
}

int wherry_grammar_mask(const wherry_grammar* grammar, const int32_t* stop_ids, size_t n_stop_ids,
                        wherry_mask* out) {
  return guard([&] {
    required(grammar, "grammar");
    if (n_stop_ids > 0) required(stop_ids, "stop_ids");
    required(out, "out") = grammar->grammar.mask(stop_ids, n_stop_ids);
  });
}

}  // extern "C"
