/*
 * The C ABI of libwherry_host: everything above tokens for a host that has its own tokenizer, chat
 * templates, grammars and engine, such as Python's server. Requests come in as JSON, and responses
 * leave as JSON, in batches.
 *
 * Texts are UTF-8 with a length in bytes. No exception leaves a function. Functions may be called
 * from any thread unless they say otherwise.
 */
#ifndef WHERRY_APP_HOST_HOST_ABI_H_
#define WHERRY_APP_HOST_HOST_ABI_H_

#include <stddef.h>
#include <stdint.h>

#include "wherry.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WHERRY_HOST_ABI_VERSION 5

typedef struct wherry_host wherry_host;

/* Collects the bytes that a service returns. */
typedef struct wherry_host_bytes wherry_host_bytes;

/* What a service returns. */
enum {
  WHERRY_HOST_OK = 0,
  WHERRY_HOST_REFUSED = 1, /* the bytes are the reason, for the client */
  WHERRY_HOST_GONE = 2,    /* the client has aborted the request */
  WHERRY_HOST_FAILED = 3,  /* the bytes are the reason; a fault of the host */
  WHERRY_HOST_TOO_MANY = 4 /* of `encode`: the bytes are one int64, the least number of tokens */
};

/* Kinds of tokens. */
enum { WHERRY_HOST_UNKNOWN = 0, WHERRY_HOST_TEXT = 1, WHERRY_HOST_SPECIAL = 2 };

/* What the host brings. Services are called on the thread that starts a request, and on the one
 * that calls wherry_host_hear. */
typedef struct {
  size_t size; /* sizeof(wherry_host_services) */
  void* context;

  /* tokenizer: ids are int32 in this machine's byte order. limit: the text is untrusted, and need
   * not be encoded if it has more tokens; -1: there is none */
  int (*encode)(void* context, const char* text, size_t n, int add_special_tokens, int64_t limit,
                wherry_host_bytes* ids);
  /* numbers: int32 [3, n]: ids, segments, and the text of each token (-1: a special token) */
  int (*encode_pair)(void* context, const char* first, size_t n_first, const char* second,
                     size_t n_second, wherry_host_bytes* numbers);
  int (*decode)(void* context, const int32_t* ids, size_t n, int skip_special_tokens,
                wherry_host_bytes* text);
  int64_t (*id_of)(void* context, const char* name, size_t n); /* -1: no token has this name */
  /* Returns a kind of tokens; piece: the token's bytes; name: its name. */
  int (*token)(void* context, int32_t id, wherry_host_bytes* piece, wherry_host_bytes* name);

  /* Decodes an image file. rgb: uint8 [height, width, 3]. WHERRY_HOST_REFUSED: it cannot be read,
   * or exceeds a limit of the host. Called for models with "vision" alone. */
  int (*decode_image)(void* context, const void* file, size_t n, wherry_host_bytes* rgb,
                      int32_t* width, int32_t* height);

  /* Renders template number `which` with {"messages", "add_generation_prompt", "variables"}. */
  int (*render)(void* context, int which, const char* json, size_t n, wherry_host_bytes* text);

  /* Begins to make the grammar of request `id`; wherry_host_constrained reports it. json: what the
   * output has to follow: {"tenant": the upper half of the user's number, "fields": those of the
   * request that constrain, "chat": null or what app/chat/chat_tools.cc says of tools and
   * reasoning}. */
  void (*constrain)(void* context, int64_t id, const char* json, size_t n);

  /* engine: as wherry_engine_add and wherry_engine_abort; error: the reason of a status */
  int (*add)(void* context, uint64_t id, const int32_t* prompt, size_t n,
             const wherry_params* params, wherry_host_bytes* error);
  void (*abort)(void* context, uint64_t id);
  void (*wake)(void* context); /* makes the host call wherry_host_hear soon */
} wherry_host_services;

/* Adds bytes to what a service returns. */
WHERRY_API void wherry_host_give(wherry_host_bytes* bytes, const void* data, size_t n);

WHERRY_API int wherry_host_abi_version(void); /* returns the library's WHERRY_HOST_ABI_VERSION */
WHERRY_API const char* wherry_host_last_error(void); /* of the calling thread */

/*
 * Opens a model. services must stay valid until wherry_host_close. model_json:
 * {"name", "context", "vocab_size": of the logits, "tokens": number, "largest_id", "byte_rules":
 *  null or {"each_byte", "strip"}, "eos_ids", "defaults": generation_config.json, "decoder_start":
 *  ids, "head": wherry-head.json, "embedding_size", "writes_text", "embeds", "tool_format": "" or a
 * name, "adapts": whether messages are adapted to templates, "vision": null or wherry-vision.json,
 *  "templates": [{"source",
 * "variables"}], the second one for chats with tools}.
 */
WHERRY_API int wherry_host_open(const char* model_json, size_t n,
                                const wherry_host_services* services, wherry_host** out);

/* Token counts and times of a request so far; times are the maximum over its choices. */
typedef struct {
  int64_t prompt, sampled, cached, drafted, accepted, reasoning;
  double queue, prefill, decode;  /* seconds */
  int64_t longest;                /* output tokens of the longest choice */
  double since_first, since_last; /* seconds since the first and the last event; -1: none yet */
  int32_t finish;                 /* of the first choice that ended, one of WHERRY_HOST_RUNS ... */
} wherry_host_totals;

/* Why a choice ended. */
enum {
  WHERRY_HOST_RUNS = 0,
  WHERRY_HOST_STOP = 1,
  WHERRY_HOST_LENGTH = 2,
  WHERRY_HOST_TOOL_CALLS = 3
};

/* Kinds of messages about a request. */
enum {
  /* How a request was read: {"prompt_tokens", "choices", "n", "room": the maximum number of output
   * tokens that the context leaves, "max_tokens": the maximum that the request and the host allow,
   * "dropped_messages", "logprobs", "temperature", "top_p", "presence_penalty",
   * "frequency_penalty", "adapted", "ignored"}. A request for vectors has only "prompt_tokens",
   * "choices" and "ignored". */
  WHERRY_HOST_OPENED = 0,
  WHERRY_HOST_CHUNK = 1, /* a JSON object of the response */
  WHERRY_HOST_LAST = 2,  /* the last one */
  WHERRY_HOST_ERROR = 3  /* {"error": ...}, and nothing follows */
};

typedef struct {
  int64_t id;
  int32_t kind;
  const char* json;
  size_t n;
  wherry_host_totals totals;
} wherry_host_message;

/*
 * Plans a request and submits it to the engine. id: chosen by the host, unique among running
 * requests. options_json: null or an object with any members of RequestOptions
 * (app/chat/request_options.h). Returns WHERRY_OK, or the status of an error;
 * wherry_host_last_error is then {"error": ...} as JSON, with {"overflow": [context, prompt tokens,
 * output tokens]} for a request that exceeds the context. A request that is constrained is
 * submitted after wherry_host_constrained.
 */
WHERRY_API int wherry_host_start(wherry_host* host, int64_t id, const char* request_json, size_t n,
                                 const char* options_json);
/*
 * Returns in *ids the *n tokens of a chat's messages in the model's template; valid until the
 * thread's next call. Errors as wherry_host_start.
 */
WHERRY_API int wherry_host_prompt(wherry_host* host, const char* request_json, size_t n_json,
                                  int add_special_tokens, const int32_t** ids, size_t* n);
/* Returns in *out the counts and times of a request so far; WHERRY_NOT_FOUND: it is not open. */
WHERRY_API int wherry_host_totals_of(wherry_host* host, int64_t id, wherry_host_totals* out);
/* Aborts a request; does nothing if it has ended. */
WHERRY_API void wherry_host_abort(wherry_host* host, int64_t id);
/*
 * Reports the grammar of a request, as a function that returns the mask of one choice, or an error
 * of the request as JSON.
 */
WHERRY_API void wherry_host_constrained(wherry_host* host, int64_t id,
                                        int (*mask)(void* context, const int32_t* stop_ids,
                                                    size_t n, wherry_mask* out),
                                        void (*release)(void* context), void* context,
                                        const char* error_json);
/*
 * Takes the engine's events, and returns the messages that follow from them and from requests that
 * were started or failed since. error: the text of failed events. The messages are valid until the
 * next call. Only one thread may call this.
 */
WHERRY_API void wherry_host_hear(wherry_host* host, const wherry_event* events, size_t n,
                                 const char* error, const wherry_host_message** messages,
                                 size_t* count);
/*
 * Validates a request without a model. task: as of RequestOptions. Returns {"outputs": number of
 * answers that it asks for, "stream": whether it asks for them in chunks}, valid until the thread's
 * next call; null for a wrong request, as an error of wherry_host_start.
 */
WHERRY_API const char* wherry_request_check(const char* task, const char* request_json, size_t n);
/*
 * Returns the traits of a model by its chat template: {"tool_format": name of the family of calls,
 * "tools": whether the template describes tools, "thinks": whether the model reasons before it
 * answers}, valid until the thread's next call; null for a template that is no valid Jinja.
 */
WHERRY_API const char* wherry_template_traits(const char* source, size_t n);
/* Returns, as JSON, a list of special tokens for each convention by which models fill gaps in
 * texts; valid until the thread's next call. */
WHERRY_API const char* wherry_fill_in_marks(void);
/*
 * Returns the grammar of a chat's output in llguidance's dialect of Lark. json: "chat" of the
 * requirements (see `constrain`), with "based": whether the fields constrain, too, and "open":
 * indices of tools that take any arguments. Returns {"text": the grammar, or "" if the fields say
 * all; "parts": [[kind, text], ...] as app/host/lark_rules.h says, which the host defines as rules
 * wherry_part0, ...; "used": those to which the text refers, and it may refer to wherry_base, which
 * stands for the fields; "tools": [{"tool": index, "schema": the part of its schema
 * or null, "parts": those that have to be enforceable, "problems": ["keyword: why", ...] of the
 * format}, ...] of tools that are not open}. Tools with
 * problems take any arguments in the text. Valid until the thread's next call; null after an error.
 */
WHERRY_API const char* wherry_calls_grammar(const char* json, size_t n);
/*
 * Returns a schema without the parts that no value satisfies (app/grammar/schema/repair.h), as
 * {"schema": ..., "problems": ["properties.a: why", ...]}, valid until the thread's next call; null
 * after an error.
 */
WHERRY_API const char* wherry_schema_repair(const char* json, size_t n);
/* Returns the name of a grammar's first rule if no text of it ends (app/grammar/endless.h), else
 * "", as above. */
WHERRY_API const char* wherry_grammar_endless(const char* text, size_t n);
/* Frees the model. No request may run, and no call may follow. */
WHERRY_API void wherry_host_close(wherry_host* host);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_APP_HOST_HOST_ABI_H_ */
