// The grammar module for web pages, which the page loads with the first request that has a grammar.
// Functions that return int return a negative wherry_status if they fail.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/grammar/compiler.h"
#include "exports.h"
#include "packed.h"

namespace {

using namespace wherry;
using namespace wherry::app;

std::unique_ptr<GrammarCompiler> compiler;
std::map<int, CompiledGrammarPtr> grammars;  // compiled grammars by number
int next_number = 1;

}  // namespace

extern "C" {

// Creates the compiler; the script calls it right after _initialize. packed: the vocabulary that
// wherry_page_vocabulary returns. Returns 1 if this module was built without a compiler.
WHERRY_API int wherry_grammars_open(const char* packed, size_t n) {
  const int status =
      guarded([&] { compiler = make_grammar_compiler(unpacked(std::string_view(packed, n))); });
  return status == WHERRY_OK && !compiler ? 1 : status;
}

// Compiles a constraint, which is packed as for script_compile; returns the grammar's number.
WHERRY_API int wherry_grammars_compile(const char* packed, size_t n) {
  const std::atomic<bool> unwanted{false};
  const int status = guarded([&] {
    grammars[next_number] =
        compiler->compile(unpacked_constraint(std::string_view(packed, n)), unwanted);
  });
  return status == WHERRY_OK ? next_number++ : status;
}

// Frees a grammar; its masks remain valid.
WHERRY_API void wherry_grammars_forget(int number) { grammars.erase(number); }

// Creates the mask of one request; null: wherry_last_error has the reason. stop_ids: tokens that
// may end the output where the grammar is complete.
WHERRY_API wherry_mask* wherry_grammars_mask(int number, const int32_t* stop_ids, size_t n) {
  std::unique_ptr<wherry_mask> mask;
  const int status = guarded([&] {
    mask = std::make_unique<wherry_mask>(
        grammars.at(number)->mask(std::vector<int32_t>(stop_ids, stop_ids + n)));
  });
  return status == WHERRY_OK ? mask.release() : nullptr;
}

// Sets the bits [words] of the allowed tokens and returns 0; if all tokens are allowed, returns 1
// and need not set bits. A negative result is a failure, whose reason wherry_grammars_error
// returns.
WHERRY_API int wherry_grammars_fill(wherry_mask* mask, uint32_t* bits, size_t words) {
  int all = 0;
  const int status = mask->fill(mask->context, bits, words, &all);
  return status < 0 ? status : all;
}
// Advances the mask by a token; returns 1 if the output must end with this token, else 0.
WHERRY_API int wherry_grammars_accept(wherry_mask* mask, int32_t token) {
  int complete = 0;
  const int status = mask->accept(mask->context, token, &complete);
  return status < 0 ? status : complete;
}
// Writes the tokens that the grammar forces next, at most `cap`; returns their number.
WHERRY_API int wherry_grammars_forced(wherry_mask* mask, int32_t* tokens, size_t cap) {
  size_t n = 0;
  const int status = mask->forced(mask->context, tokens, cap, &n);
  return status < 0 ? status : static_cast<int>(n);
}
WHERRY_API const char* wherry_grammars_error(wherry_mask* mask) {
  return mask->error(mask->context);
}
WHERRY_API void wherry_grammars_release(wherry_mask* mask) {
  mask->release(mask->context);
  delete mask;
}

}  // extern "C"
