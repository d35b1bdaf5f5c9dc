// Exports functions to the page's script besides the C ABI.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "wherry.h"

#define WHERRY_MASK_IMPORT(name) __attribute__((import_module("wherry_mask"), import_name(name)))

extern "C" {

// The script's grammar masks, identified by numbers. All functions but `release` return a negative
// number for a failure.
WHERRY_MASK_IMPORT("fill")  // returns 1 if every token is allowed
int wherry_mask_import_fill(uint32_t mask, uint32_t* bits, size_t words);
WHERRY_MASK_IMPORT("accept")  // returns 1 if the output ends with this token
int wherry_mask_import_accept(uint32_t mask, int32_t token);
WHERRY_MASK_IMPORT("forced")  // returns the number of tokens that it wrote
int wherry_mask_import_forced(uint32_t mask, int32_t* tokens, size_t cap);
WHERRY_MASK_IMPORT("error")  // writes the reason of the last failure in UTF-8 and returns its bytes
size_t wherry_mask_import_error(uint32_t mask, char* text, size_t cap);
WHERRY_MASK_IMPORT("release") void wherry_mask_import_release(uint32_t mask);

void __wasm_call_ctors(void);

}  // extern "C"

namespace {

uint32_t number(void* context) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(context));
}

int fill(void* context, uint32_t* bits, size_t words, int* all) {
  const int result = wherry_mask_import_fill(number(context), bits, words);
  *all = result > 0 ? 1 : 0;
  return result < 0 ? result : 0;
}

int accept(void* context, int32_t token, int* complete) {
  const int result = wherry_mask_import_accept(number(context), token);
  *complete = result > 0 ? 1 : 0;
  return result < 0 ? result : 0;
}

int forced(void* context, int32_t* tokens, size_t cap, size_t* n) {
  const int result = wherry_mask_import_forced(number(context), tokens, cap);
  *n = result < 0 ? 0 : static_cast<size_t>(result);
  return result < 0 ? result : 0;
}

const char* error(void* context) {
  static std::string text;
  text.resize(1024);
  text.resize(wherry_mask_import_error(number(context), text.data(), text.size()));
  return text.c_str();
}

void release(void* context) { wherry_mask_import_release(number(context)); }

}  // namespace

extern "C" {

// Runs the constructors of static objects; the script calls it before any other function.
WHERRY_API void _initialize(void) { __wasm_call_ctors(); }

WHERRY_API void* wherry_page_allocate(size_t bytes) { return std::malloc(bytes); }
WHERRY_API void wherry_page_free(void* data) { std::free(data); }

// Returns the bytes of a record that the script writes or reads: 0 is params, 1 event, 2 stats.
WHERRY_API size_t wherry_page_size(int record) {
  const size_t sizes[] = {sizeof(wherry_params), sizeof(wherry_event), sizeof(wherry_stats)};
  return record < 0 || record > 2 ? 0 : sizes[record];
}

// Returns a record for wherry_params that calls a mask of the script; valid until the next call.
WHERRY_API const wherry_mask* wherry_page_mask(uint32_t mask) {
  static wherry_mask record;
  void* context = reinterpret_cast<void*>(static_cast<uintptr_t>(mask));
  record = {sizeof record, context, fill, accept, forced, error, release};
  return &record;
}

}  // extern "C"
