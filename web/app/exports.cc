#include "exports.h"

#include <cstdlib>

namespace wherry::app {
namespace {

std::string last_error;

}  // namespace

void set_last_error(const std::string& reason) { last_error = reason; }

}  // namespace wherry::app

extern "C" {

void __wasm_call_ctors(void);

__attribute__((import_module("wasi_snapshot_preview1"), import_name("random_get"))) int
random_bytes(void* data, size_t n);
// The C library's function, which std::random_device calls.
int getentropy(void* data, size_t n) { return random_bytes(data, n); }

// Runs the constructors of global variables. The script calls it before any other function.
WHERRY_API void _initialize(void) { __wasm_call_ctors(); }
WHERRY_API void* wherry_page_allocate(size_t bytes) { return std::malloc(bytes); }
WHERRY_API void wherry_page_free(void* data) { std::free(data); }
WHERRY_API const char* wherry_last_error(void) { return wherry::app::last_error.c_str(); }

}  // extern "C"
