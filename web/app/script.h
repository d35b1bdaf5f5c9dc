// Functions that the app module imports from the page's script (web/src/app/bridge.ts). They must
// not throw.
#ifndef WHERRY_WEB_APP_SCRIPT_H_
#define WHERRY_WEB_APP_SCRIPT_H_

#include <stddef.h>
#include <stdint.h>

#include "wherry.h"

#define WHERRY_IMPORT(name) __attribute__((import_module("wherry_app"), import_name(name)))

extern "C" {

// Call the page's core like wherry_engine_add and wherry_engine_abort. Of params->mask, only
// `context` is set, to the number of a compiled grammar.
WHERRY_IMPORT("add")
int script_add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params* params);
WHERRY_IMPORT("abort") void script_abort(uint64_t id);
// Writes the reason of the last failure of `add`, in UTF-8; returns the number of bytes written.
WHERRY_IMPORT("error") size_t script_error(char* text, size_t cap);

// Passes one JSON object of a response to the request with the script's number `request`. last:
// whether no further object follows.
WHERRY_IMPORT("chunk") void script_chunk(uint32_t request, const char* json, size_t n, int last);

// Starts to compile the constraint of a request, which is packed (packed.h). The script calls
// wherry_page_compiled with `waiter` when the grammar is ready.
WHERRY_IMPORT("compile") void script_compile(int64_t waiter, const char* packed, size_t n);

}  // extern "C"

#endif  // WHERRY_WEB_APP_SCRIPT_H_
