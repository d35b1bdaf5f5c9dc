/*
 * A compiled folder that talks: what an app needs above tokens.
 *
 * Requests and answers are OpenAI's JSON, in UTF-8 with a length (a text that is given without one
 * ends with a zero byte). Every call returns 0 or a negative wherry_status, whose text
 * wherry_app_last_error() gives (per thread). No exception crosses this border. An app may be used
 * from several threads.
 */
#ifndef WHERRY_APP_H_
#define WHERRY_APP_H_

#include <stddef.h>
#include <stdint.h>

#include "wherry.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WHERRY_APP_ABI_VERSION 1

typedef struct wherry_app wherry_app;

/* How far a load is. `report` is called on the thread that loads; one that gives other than 0 ends
 * the load with WHERRY_CANCELLED. */
typedef struct {
  size_t size; /* sizeof(wherry_app_progress) */
  void* context;
  /* phase: "weights" (done and total in bytes), or "files", "tokenizer", "ready" (0 or 1 of 1). */
  int (*report)(void* context, const char* phase, int64_t done, int64_t total);
} wherry_app_progress;

enum { WHERRY_CANCELLED = -7 }; /* the caller of a load asked for its end */

WHERRY_API int wherry_app_abi_version(void); /* WHERRY_APP_ABI_VERSION of the library */
WHERRY_API const char* wherry_app_last_error(void);

/*
 * folder: what `wherry compile` or `wherry package` has written: wherry.json and what it lists.
 * options_json, or null; all optional, unknown keys are errors:
 * {"device": "cpu" (default) or "<kind>:<index>", whose driver the program has opened,
 *  "library": path of the compiled library (default: the manifest's), or
 *  "system_library_prefix": of one that is linked into the program,
 *  "runtime": path of TVM's run time (default: none is opened, the program has it),
 *  "name": the model's, in answers (default: the manifest's),
 *  "threads": of the kernels (default: all cores),
 *  "pack_dir": folder for weights in the kernels' layout, which are then mapped,
 *  "check_weights": as wherry_model_load; other files are compared with the manifest by their
 * sizes, "context", "kv_tokens", "max_batch", "prefill_chunk", "prefix_cache", "cache_dir",
 * "cache_bytes", "max_drafts": as wherry_engine_create} progress: or null.
 */
WHERRY_API int wherry_app_open(const char* folder, const char* options_json,
                               const wherry_app_progress* progress, wherry_app** out);

/*
 * One whole JSON object: with "stream": true a chunk, else the completion. last != 0 with the final
 * one, which is {"error": {"message", "type", "param", "code"}} if the request failed; exactly one
 * call is the last, also of a request that was aborted or whose app was closed. Called on the app's
 * thread, so the calls for one request come one after the other; it must not block for long, and
 * may start and abort requests, but not close the app.
 *
 * json is ended by a zero byte that length does not count, and is valid until the callback returns.
 * With "stream": true and "stream_options": {"include_usage": true} the last chunk has no choices
 * but the usage, as OpenAI's. What a server writes as "[DONE]" is `last`.
 */
typedef void (*wherry_app_on_chunk)(void* context, const char* json, size_t length, int last);

/*
 * Starts a request: one with "messages" is a chat completion, one with "prompt" a text completion.
 * *id: for wherry_app_abort; from 1 on.
 *
 * What is wrong with a request comes as its last call of on_chunk, like all that happens to it
 * later; the status is for what is wrong with the call itself. Not supported, and refused by name:
 * tools, formats that the output is held to, echo, suffix, prompt_logprobs, prediction.
 */
WHERRY_API int wherry_app_start(wherry_app* app, const char* request_json, size_t length,
                                wherry_app_on_chunk on_chunk, void* context, int64_t* id);
/* Ends a request; its last call of on_chunk says so, as {"error": {"code": "aborted", ...}}.
 * WHERRY_NOT_FOUND if it has ended. */
WHERRY_API int wherry_app_abort(wherry_app* app, int64_t id);

/* *json: {"model", "context", "requests", "pages_total", "pages_free", ...}; freed by
 * wherry_app_free. */
WHERRY_API int wherry_app_stats(wherry_app* app, char** json);
/* The system is short of memory: cached prefixes that no request uses are forgotten. */
WHERRY_API int wherry_app_trim(wherry_app* app);
WHERRY_API void wherry_app_free(void* memory);
/* Aborts what runs, waits for its last callbacks, frees everything; a null app is nothing. Not from
 * a callback. */
WHERRY_API void wherry_app_close(wherry_app* app);

/* For tests and tools. *text and *ids are freed by wherry_app_free; *text is ended by a zero byte
 * that *length does not count. */

/* The prompt that a chat request would have: {"messages", "tools", ...} -> text. */
WHERRY_API int wherry_app_render(wherry_app* app, const char* request_json, size_t length,
                                 char** text, size_t* text_length);
WHERRY_API int wherry_app_encode(wherry_app* app, const char* text, size_t length,
                                 int add_special_tokens, int32_t** ids, size_t* n);
WHERRY_API int wherry_app_decode(wherry_app* app, const int32_t* ids, size_t n,
                                 int skip_special_tokens, char** text, size_t* length);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_APP_H_ */
