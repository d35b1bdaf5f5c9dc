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

/* How far a load or a download is. `report` is called on the caller's thread, or on that which
 * brings a download's bytes; one that gives other than 0 ends it with WHERRY_CANCELLED. */
typedef struct {
  size_t size; /* sizeof(wherry_app_progress) */
  void* context;
  /* phase: "weights" (done and total in bytes), or "files", "tokenizer", "ready" (0 or 1 of 1). Of
   * a download, both in bytes: "check" (files that are there are read), "download". */
  int (*report)(void* context, const char* phase, int64_t done, int64_t total);
} wherry_app_progress;

enum {                        /* in addition to wherry_status */
       WHERRY_CANCELLED = -7, /* the caller of a load or a download asked for its end */
       WHERRY_UNREACHABLE =
           -8,             /* an address cannot be fetched: no connection, or its server refuses */
       WHERRY_DAMAGED = -9 /* what comes is not what the manifest lists, also the second time */
};

WHERRY_API int wherry_app_abi_version(void); /* WHERRY_APP_ABI_VERSION of the library */
WHERRY_API const char* wherry_app_last_error(void);

/*
 * folder: what `wherry compile` or `wherry package` has written: wherry.json and what it lists.
 * options_json, or null; all optional, unknown keys are errors:
 * {"device": "cpu" (default), "<kind>" or "<kind>:<index>",
 *  "driver": path of the library that drives such a device, unless the program has opened one
 * (default: libwherry_<kind>.so, for cuda libtvm_runtime_cuda.so, as the linker finds it),
 *  "library": path of the compiled library, or "system_library_prefix": of one that is linked into
 * the program (default: the manifest's; where its file is not in the folder, as in a package, the
 * one that is linked in),
 *  "runtime": path of TVM's run time (default: none where the program has it, else
 * libtvm_runtime.so, as the linker finds it),
 *  "name": the model's, in answers (default: the manifest's),
 *  "threads": of the kernels (default: all cores),
 *  "pack_dir": folder for weights in the kernels' layout, which are then mapped,
 *  "tool_format": how the model calls tools, the name of a family (default: its template tells),
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
 * echo, suffix, prompt_logprobs, prediction; and, in a library that was built without xgrammar,
 * what holds the output to a form (response_format, guided_*, a tool_choice that asks for a call,
 * strict tools).
 */
WHERRY_API int wherry_app_start(wherry_app* app, const char* request_json, size_t length,
                                wherry_app_on_chunk on_chunk, void* context, int64_t* id);
/* Ends a request; its last call of on_chunk says so, as {"error": {"code": "aborted", ...}}.
 * WHERRY_NOT_FOUND if it has ended. */
WHERRY_API int wherry_app_abort(wherry_app* app, int64_t id);

/* *json: {"model", "context", "chat", "requests", "pages_total", "pages_free", ...}; freed by
 * wherry_app_free. */
WHERRY_API int wherry_app_stats(wherry_app* app, char** json);
/* The system is short of memory: cached prefixes and grammars that no request uses are forgotten.
 */
WHERRY_API int wherry_app_trim(wherry_app* app);
WHERRY_API void wherry_app_free(void* memory);
/* Aborts what runs, waits for its last callbacks, frees everything; a null app is nothing. Not from
 * a callback. */
WHERRY_API void wherry_app_close(wherry_app* app);

/*
 * Model folders from a server, by the app's own HTTP: what the system knows of proxies,
 * certificates and permissions counts.
 */

/* Where a fetcher puts what a server answers. */
typedef struct wherry_app_answer wherry_app_answer;

typedef struct {
  size_t size; /* sizeof(wherry_app_fetcher) */
  void* context;
  /*
   * GETs url, with "Accept-Encoding: identity", and where from > 0 with "Range: bytes=<from>-".
   * Follows redirects. Says the status, then gives the body in pieces as they come, from this
   * thread or another, and returns when it has ended. Called on the thread of wherry_app_download,
   * one address after the other.
   */
  void (*fetch)(void* context, const char* url, int64_t from, wherry_app_answer* answer);
} wherry_app_fetcher;

/* HTTP's, of the last of several that redirect. Other than 0 says: give up the connection, return.
 */
WHERRY_API int wherry_app_answer_status(wherry_app_answer* answer, int status);
/* The next n bytes of the body, copied; the result likewise. */
WHERRY_API int wherry_app_answer_bytes(wherry_app_answer* answer, const void* data, size_t n);
/* There was no answer, or it broke off: why. */
WHERRY_API void wherry_app_answer_failed(wherry_app_answer* answer, const char* reason);

/*
 * Brings what wherry_app_open takes (assets/NAME of `wherry package`) from below url into folder,
 * which is made: wherry.json, then each file that it lists, checked by SHA-256. Returns when all is
 * there. A call that ended early is taken up where it ended, by the next; so is a connection that
 * breaks, up to five times in a row that bring nothing. What is there and whole is not fetched
 * again, and without a connection a folder that was complete is good as it is.
 *
 * An older model in the folder can be opened until the new one is complete. The disk has to have
 * room for what is missing, and 16 MiB, before the first byte. WHERRY_BUSY: another download writes
 * to the folder.
 *
 * options_json, or null; all optional, unknown keys are errors:
 * {"verify": false: files of a complete folder are compared by their sizes; true: by what is in
 *   them, and what is damaged comes again (after a load that found damage),
 *  "retry_wait": ms before a connection that broke is tried again (250); doubled each time}
 * progress: or null.
 */
WHERRY_API int wherry_app_download(const char* url, const char* folder, const char* options_json,
                                   const wherry_app_fetcher* fetcher,
                                   const wherry_app_progress* progress);

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
