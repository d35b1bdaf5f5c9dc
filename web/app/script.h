// What the page's script does for the app: web/src/app/app.ts. Nothing is thrown through these.
#ifndef WHERRY_WEB_APP_SCRIPT_H_
#define WHERRY_WEB_APP_SCRIPT_H_

#include <stddef.h>
#include <stdint.h>

#include "wherry.h"

#define WHERRY_IMPORT(name) __attribute__((import_module("wherry_app"), import_name(name)))

extern "C" {

// As wherry_engine_add and wherry_engine_abort, of the page's core. params->mask->context is the
// number of a compiled grammar, which nothing else of that record belongs to.
WHERRY_IMPORT("add")
int script_add(uint64_t id, const int32_t* tokens, size_t n, const wherry_params* params);
WHERRY_IMPORT("abort") void script_abort(uint64_t id);
// The reason of the last failure of `add`: how many bytes it wrote, UTF-8.
WHERRY_IMPORT("error") size_t script_error(char* text, size_t cap);

// One JSON object for a request, by the script's own number; last: none follows.
WHERRY_IMPORT("chunk") void script_chunk(uint32_t request, const char* json, size_t n, int last);

// Compiles what a request is held to (web/app/packed.h), for wherry_page_compiled.
WHERRY_IMPORT("compile") void script_compile(int64_t waiter, const char* packed, size_t n);

}  // extern "C"

#endif  // WHERRY_WEB_APP_SCRIPT_H_
