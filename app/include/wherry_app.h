/*
 * The C ABI for apps: requests to a compiled model for chats, completions, embeddings, rankings and
 * classes, in the JSON of OpenAI's API and of the server.
 *
 * Texts are UTF-8 with a length in bytes; a text without a length ends with a zero byte. Functions
 * that return int return WHERRY_OK (0), or a negative wherry_status or code of this header;
 * wherry_app_last_error() then returns the message of the calling thread's last error. No exception
 * leaves a function. Several threads may use an app.
 *
 * Records that grow with versions begin with `size`, the size of the record that the caller was
 * compiled with.
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

/*
 * Receives the progress of a load or a download. `report` runs on the caller's thread, or on the
 * thread that delivers a download's bytes. If it returns anything but 0, the call ends with
 * WHERRY_CANCELLED.
 */
typedef struct {
  size_t size; /* sizeof(wherry_app_progress) */
  void* context;
  /*
   * phase of a load: "weights" (done and total in bytes), then "files", "tokenizer" and "ready"
   * (done is 0 or 1, total is 1). phase of a download: "check" (it reads files that exist), then
   * "download"; both count bytes.
   */
  int (*report)(void* context, const char* phase, int64_t done, int64_t total);
} wherry_app_progress;

/* Error codes besides those of wherry_status. */
enum {
  WHERRY_CANCELLED = -7,   /* the caller cancelled a load or a download */
  WHERRY_UNREACHABLE = -8, /* a URL cannot be fetched: no connection, or the server refuses */
  WHERRY_DAMAGED = -9      /* a file differs from the manifest after two attempts */
};

WHERRY_API int wherry_app_abi_version(void); /* returns the library's WHERRY_APP_ABI_VERSION */
WHERRY_API const char* wherry_app_last_error(void);

/*
 * Opens a compiled model; blocks until it is loaded.
 *
 * folder: the output of `wherry compile` or `wherry package`: wherry.json and the files it lists.
 * options_json: null or a JSON object; all keys are optional, unknown keys are errors:
 * {"device": "cpu", "<kind>" or "<kind>:<index>"; "auto": the first of the devices in a package
 *   that works here, else the CPU (default: "auto" for a package, "cpu" for other folders),
 *  "driver": path of the device's driver library, unless the program has opened one
 *   (default: libwherry_<kind>.so, for cuda libtvm_runtime_cuda.so, from the linker's search path),
 *  "library": path of the compiled library, or
 *  "system_library_prefix": symbol prefix of a compiled library that is linked into the program
 *   (default: the library of the manifest; if its file is not in the folder, as in a package, the
 *   library that is linked in),
 *  "runtime": path of TVM's runtime (default: none if the program contains it, else
 *   libtvm_runtime.so from the linker's search path),
 *  "name": name of the model in responses (default: the manifest's),
 *  "threads": number of threads that run kernels (default: as many as large cores),
 *  "pack_dir": folder for weights in the kernels' layout, which later loads map, and in it
 *   "programs", what drivers of GPUs have compiled,
 *  "tool_format": family of the model's tool-call format (default: detected from its template),
 *  "check_weights": as in wherry_model_load; other files are checked by their sizes,
 *  "context", "kv_tokens", "kv_memory", "max_batch", "prefill_chunk", "prefix_cache", "cache_dir",
 *  "cache_bytes", "max_drafts": as in wherry_engine_create}
 * progress: receives the progress of the load, or null.
 * out: gets the app; wherry_app_close frees it.
 */
WHERRY_API int wherry_app_open(const char* folder, const char* options_json,
                               const wherry_app_progress* progress, wherry_app** out);

/*
 * Receives a response as whole JSON objects: chunks with "stream": true, else one completion.
 *
 * last is nonzero for the final object, which is {"error": {"message", "type", "param", "code"}} if
 * the request failed. Each request gets exactly one last call, also if it was aborted or its app
 * was closed. With "stream": true and "stream_options": {"include_usage": true} the last chunk has
 * the usage and no choices, as in OpenAI's API; `last` takes the place of a server's "[DONE]".
 *
 * json is valid until the callback returns; a zero byte, which length does not count, ends it.
 * The callback runs on the app's thread, so the calls for one request never overlap. It must not
 * block for long, and may start and abort requests, but must not close the app.
 */
typedef void (*wherry_app_on_chunk)(void* context, const char* json, size_t length, int last);

/*
 * Starts a request and returns at once. A request with "messages" is a chat completion, one with
 * "prompt" a text completion. Others are answered whole, with the fields and answers of the server:
 * "task": "embed" (default with "input") those of POST /v1/embeddings, "rerank" (default with
 * "query") those of POST /rerank, "score" those of POST /score, "classify" those of POST /classify.
 *
 * on_chunk, context: called with the response. id: gets the request's number, from 1 on, for
 * wherry_app_abort; may not be null.
 *
 * Errors of the request itself arrive in the last call of on_chunk; the returned status only
 * reports errors of this call. In a library that was built without xgrammar, fields that constrain
 * the output are such errors (response_format, guided_*, a tool_choice that requires a call, strict
 * tools), and everywhere a custom tool whose input follows a Lark grammar.
 */
WHERRY_API int wherry_app_start(wherry_app* app, const char* request_json, size_t length,
                                wherry_app_on_chunk on_chunk, void* context, int64_t* id);
/*
 * Aborts a request; its last call of on_chunk gets {"error": {"code": "aborted", ...}}. Returns
 * WHERRY_NOT_FOUND if the request has ended.
 */
WHERRY_API int wherry_app_abort(wherry_app* app, int64_t id);

/*
 * Returns statistics as JSON: {"model", "device", "code", "passed_over", "context", "chat",
 * "images" (whether requests may have some), "requests", "pages_total", "pages_free", ...}. The
 * caller frees *json with wherry_app_free.
 *
 * device: what runs the model, as in wherry_app_open. code: the target of the library that runs, as
 * "cpu:armv8-a+dotprod"; null if it is not of a package. passed_over: libraries of the package that
 * were preferred and do not run here: [{"code", "reason"}].
 */
WHERRY_API int wherry_app_stats(wherry_app* app, char** json);
/*
 * Frees cached prefixes and grammars that no request uses. Call it when the system is short of
 * memory.
 */
WHERRY_API int wherry_app_trim(wherry_app* app);
/*
 * Limits the threads that run kernels, of all apps of the process, from the next step on; 0 removes
 * the limit. Answers stay the same. Call it when the device is hot.
 */
WHERRY_API int wherry_app_limit_threads(int most);
WHERRY_API void wherry_app_free(void* memory);
/*
 * Aborts all requests, waits for their last callbacks and frees the app; does nothing for null.
 * Must not be called from a callback.
 */
WHERRY_API void wherry_app_close(wherry_app* app);

/*
 * Downloads of model folders from a server. The app's own HTTP code fetches the files, so that the
 * system's proxies, certificates and permissions apply.
 */

/* An HTTP response, which a fetcher fills. */
typedef struct wherry_app_answer wherry_app_answer;

typedef struct {
  size_t size; /* sizeof(wherry_app_fetcher) */
  void* context;
  /*
   * Fetches url with GET and "Accept-Encoding: identity", and for from > 0 with "Range:
   * bytes=<from>-"; follows redirects. It reports the status with wherry_app_answer_status, then
   * the body in pieces with wherry_app_answer_bytes, from this or another thread, and returns when
   * the body has ended. Called on the thread of wherry_app_download, for one URL at a time.
   */
  void (*fetch)(void* context, const char* url, int64_t from, wherry_app_answer* answer);
} wherry_app_fetcher;

/*
 * Reports the HTTP status, after redirects the last one. If it returns anything but 0, the fetcher
 * must close the connection and return.
 */
WHERRY_API int wherry_app_answer_status(wherry_app_answer* answer, int status);
/*
 * Delivers the next n bytes of the body, which are copied. If it returns anything but 0, the
 * fetcher must close the connection and return.
 */
WHERRY_API int wherry_app_answer_bytes(wherry_app_answer* answer, const void* data, size_t n);
/* Reports why there was no response, or why it broke off. */
WHERRY_API void wherry_app_answer_failed(wherry_app_answer* answer, const char* reason);

/*
 * Downloads a model folder for wherry_app_open (assets/NAME of `wherry package`); blocks until it
 * is complete.
 *
 * url: the server's folder. folder: the local folder, which is created if missing. The call fetches
 * wherry.json, then each file that it lists, and checks their SHA-256. A later call resumes an
 * interrupted download; a broken connection is retried until five consecutive attempts bring
 * nothing. Complete files are not fetched again, and a complete folder is accepted without a
 * connection.
 *
 * An older model in the folder can be opened until the new one is complete. Before the first byte,
 * the disk must have room for the missing files and 16 MiB (else WHERRY_NO_SPACE). Returns
 * WHERRY_BUSY if another download writes to the folder.
 *
 * options_json: null or a JSON object; all keys are optional, unknown keys are errors:
 * {"verify": false (default) compares files of a complete folder by size; true by content, and
 *   fetches damaged files again (for use after a load that found damage),
 *  "retry_wait": milliseconds before the first retry (250), doubled for each further one}
 * progress: receives the progress of the download, or null.
 */
WHERRY_API int wherry_app_download(const char* url, const char* folder, const char* options_json,
                                   const wherry_app_fetcher* fetcher,
                                   const wherry_app_progress* progress);

/*
 * Lists the files that a model folder lacks, for apps whose system fetches them in the background:
 * [{"name", "size": bytes, "part": file name}] as JSON. The app writes a file's content to "part"
 * in the folder, which is created; wherry_app_download then checks its SHA-256 and takes it without
 * fetching it. Files that are complete in the folder, or in their part files, or empty are not
 * listed.
 *
 * manifest_json: the content of the server's wherry.json. The caller frees *json with
 * wherry_app_free. Returns WHERRY_BUSY if a download writes to the folder.
 */
WHERRY_API int wherry_app_missing(const char* manifest_json, size_t length, const char* folder,
                                  char** json);

/*
 * Functions for tests and tools. The caller frees *text and *ids with wherry_app_free; a zero byte,
 * which *length does not count, ends *text.
 */

/* Renders the prompt of a chat request: {"messages", "tools", ...} -> text. */
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
