// Exports for the page's script besides the C ABI.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "wherry.h"

#define WHERRY_MASK_IMPORT(name) __attribute__((import_module("wherry_mask"), import_name(name)))

extern "C" {

// The script's masks, by number. All but `release` give a negative number for a failure.
WHERRY_MASK_IMPORT("fill")  // 1: every token may come
int wherry_mask_import_fill(uint32_t mask, uint32_t* bits, size_t words);
WHERRY_MASK_IMPORT("accept")  // 1: the output ends here
int wherry_mask_import_accept(uint32_t mask, int32_t token);
WHERRY_MASK_IMPORT("forced")  // how many tokens it wrote
int wherry_mask_import_forced(uint32_t mask, int32_t* tokens, size_t cap);
WHERRY_MASK_IMPORT("error")  // how many bytes it wrote: the reason of the last failure, UTF-8
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

// The first call of all.
WHERRY_API void _initialize(void) { __wasm_call_ctors(); }

WHERRY_API void* wherry_page_allocate(size_t bytes) { return std::malloc(bytes); }
WHERRY_API void wherry_page_free(void* data) { std::free(data); }

// Bytes of the records that the script writes and reads: params, event, stats.
WHERRY_API size_t wherry_page_size(int record) {
  const size_t sizes[] = {sizeof(wherry_params), sizeof(wherry_event), sizeof(wherry_stats)};
  return record < 0 || record > 2 ? 0 : sizes[record];
}

// A mask of the script's for wherry_params; valid until the next call.
WHERRY_API const wherry_mask* wherry_page_mask(uint32_t mask) {
  static wherry_mask record;
  void* context = reinterpret_cast<void*>(static_cast<uintptr_t>(mask));
  record = {sizeof record, context, fill, accept, forced, error, release};
  return &record;
}

}  // extern "C"
