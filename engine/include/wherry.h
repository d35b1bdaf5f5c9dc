/*
 * The C ABI of Wherry's core: tokens in, tokens out.
 *
 * It has no tokenizer, no templates and no protocol. Every call returns 0, or a negative
 * wherry_status; wherry_last_error() returns the message of the thread's last error. No call
 * throws. Several threads may use an engine, which serialises their calls.
 *
 * Records that grow with versions begin with `size`, the size that the caller was compiled with.
 * Fields beyond it get their defaults.
 */
#ifndef WHERRY_H_
#define WHERRY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define WHERRY_API __declspec(dllexport)
#elif defined(__EMSCRIPTEN__) /* exported by the linker, too */
#define WHERRY_API __attribute__((used, visibility("default")))
#else
#define WHERRY_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WHERRY_ABI_VERSION 2

typedef struct wherry_model wherry_model;
typedef struct wherry_loader wherry_loader;
typedef struct wherry_engine wherry_engine;
typedef struct wherry_vocabulary wherry_vocabulary;
typedef struct wherry_grammar wherry_grammar;

typedef enum {
  WHERRY_OK = 0,
  WHERRY_INVALID_ARGUMENT = -1, /* the caller's mistake; nothing was changed */
  WHERRY_NOT_FOUND = -2,        /* no such file, function or request */
  WHERRY_OUT_OF_MEMORY = -3,
  WHERRY_INCOMPATIBLE = -4, /* this core cannot read the library or the weights */
  WHERRY_BUSY = -5,         /* step called while the engine's own thread runs, or out of order */
  WHERRY_INTERNAL = -6,     /* a bug of ours, or an error inside the compiled model */
  WHERRY_NO_SPACE = -10     /* the disk is full; -7 to -9 are in wherry_app.h */
} wherry_status;

typedef enum {
  WHERRY_RUNNING = 0, /* more tokens follow */
  WHERRY_STOP = 1,    /* a stop id was sampled (the event's token), or the grammar is complete */
  WHERRY_LENGTH = 2,  /* max_tokens or the context is used up; the token belongs to the output */
  WHERRY_ABORTED = 3, /* wherry_engine_abort; token is -1 */
  WHERRY_ERROR = 4,   /* the step failed; token is -1; wherry_last_error on the collecting thread */
  WHERRY_DONE = 5     /* the embedding is complete; token is -1 */
} wherry_finish;

/*
 * A grammar mask: which tokens one request allows next. The core calls it from one thread at a
 * time, mostly while the device computes. Every function returns 0, or a negative number, which
 * ends the request with WHERRY_ERROR; `error` may give the reason.
 */
typedef struct {
  size_t size; /* sizeof(wherry_mask) */
  void* context;
  /* Sets bit t % 32 of bits[t / 32] for each allowed token t and clears the others; bits is
   * [ceil(vocab / 32)]. If every token is allowed, it may set *all = 1 instead. */
  int (*fill)(void* context, uint32_t* bits, size_t words, int* all);
  /* Advances by the sampled `token`. *complete = 1: the output must end here. */
  int (*accept)(void* context, int32_t token, int* complete);
  /* Optional. Writes the tokens that the grammar forces next, at most cap; *n is their number. */
  int (*forced)(void* context, int32_t* tokens, size_t cap, size_t* n);
  /* Optional. The reason of the last failure; valid until the next call. */
  const char* (*error)(void* context);
  /* Optional. The request is over; no call follows. */
  void (*release)(void* context);
} wherry_mask;

/* One request. Call wherry_params_init, then set what differs; arrays are copied by
 * wherry_engine_add. */
typedef struct {
  size_t size; /* sizeof(wherry_params); wherry_params_init sets it */

  /* limits */
  int32_t max_tokens; /* >= 1, or 0: until the context ends */
  int32_t min_tokens; /* stop ids are not sampled before */
  const int32_t* stop_ids;
  size_t n_stop_ids;

  /* sampling; the order in which they apply is in engine/sampling/sampler.h */
  float temperature;           /* >= 0; 0 is greedy */
  float dynamic_range;         /* >= 0: temperature varies by it with the entropy; 0 is none */
  float dynamic_exponent;      /* > 0; of the normalised entropy */
  float top_p;                 /* (0, 1] */
  int32_t top_k;               /* 0: all */
  float min_p;                 /* [0, 1): share of the most likely token's probability */
  float typical_p;             /* (0, 1]; 1 is none */
  float top_n_sigma;           /* >= 0; 0 is none */
  float xtc_probability;       /* [0, 1]; 0 is none */
  float xtc_threshold;         /* (0, 0.5] */
  float mirostat_tau;          /* > 0: mirostat 2 with this surprise, bits; 0 is none */
  float mirostat_eta;          /* (0, 1] */
  float repetition_penalty;    /* > 0; 1 is none; over prompt and output */
  float presence_penalty;      /* 0 is none; over the output */
  float frequency_penalty;     /* 0 is none; over the output */
  float dry_multiplier;        /* >= 0; 0 is none */
  float dry_base;              /* >= 1 */
  int32_t dry_allowed_length;  /* >= 1 tokens */
  int32_t dry_range;           /* tokens to search for repetitions; 0: all */
  const int32_t* dry_breakers; /* token ids that end a repetition */
  size_t n_dry_breakers;
  uint64_t seed;            /* the request's own generator */
  const int32_t* bias_ids;  /* [n_bias] */
  const float* bias_values; /* [n_bias], added to the logits; -inf forbids */
  size_t n_bias;
  const int32_t* allowed; /* [n_allowed] the only allowed tokens; none: all */
  size_t n_allowed;
  const int32_t* bad_words;       /* sequences that may not be completed, one after the other */
  const size_t* bad_word_lengths; /* [n_bad_words], each at least 1 */
  size_t n_bad_words;
  const wherry_mask* mask; /* null: every token is allowed. wherry_engine_add takes ownership, even
                              if it fails: the core calls `release` once */

  /* contents of events */
  int32_t top_logprobs;    /* 0..WHERRY_MAX_TOP_LOGPROBS alternatives in each event */
  int32_t prompt_logprobs; /* -1: none; else one event for each prompt token but the first, with so
                              many alternatives, before the output's events */

  /* scheduling */
  int32_t priority; /* higher goes first */
  uint64_t user;    /* the queue shares time fairly between tenants and between a tenant's users;
                       users with equal upper 32 bits belong to one tenant */
  uint64_t salt;    /* only requests of equal salt share cached prefixes */
  int32_t adapter;  /* index of the library's adapters; 0: none */

  /* speculation: changes the speed, never the tokens */
  int32_t max_drafts;        /* draft tokens in a step: 0: none, -1: the engine's choice */
  const int32_t* prediction; /* [n_prediction] what the output is likely to repeat */
  size_t n_prediction;

  /* other kinds of requests */
  int32_t embed;         /* 1: no output; one event with the prompt's embedding */
  const int32_t* source; /* [n_source] input of the encoder, for encoder-decoder models */
  size_t n_source;
} wherry_params;

#define WHERRY_MAX_TOP_LOGPROBS 20

typedef struct {
  uint64_t id;
  int32_t token;  /* -1: none */
  int32_t finish; /* wherry_finish */
  int32_t prompt; /* 1: a token of the prompt, with its logprob */
  float logprob;  /* natural logarithm, of the unscaled distribution (temperature 1) */
  int32_t n_top;  /* how many of the two arrays below are set */
  int32_t top_ids[WHERRY_MAX_TOP_LOGPROBS];
  float top_logprobs[WHERRY_MAX_TOP_LOGPROBS];
  /* totals of the request so far */
  int32_t cached_tokens;   /* tokens of its prompt found in the prefix cache */
  int32_t drafted_tokens;  /* draft tokens verified */
  int32_t accepted_tokens; /* draft tokens accepted */
  float queue_seconds;     /* from wherry_engine_add to its first step */
  float prefill_seconds;   /* from there to its first token */
  float decode_seconds;    /* from there to this event */
  /* WHERRY_DONE: float32 [n_embedding], valid until the engine returns events again */
  const float* embedding;
  int64_t n_embedding;
} wherry_event;

typedef struct {
  size_t size;                /* sizeof(wherry_stats), set by the caller */
  uint64_t steps;             /* model runs since creation or reset */
  uint64_t prompt_tokens;     /* of the requests that were admitted */
  uint64_t prefill_tokens;    /* those that were computed */
  uint64_t cached_tokens;     /* those found in the prefix cache: in memory or on disk */
  uint64_t disk_tokens;       /* those read from disk */
  uint64_t decode_tokens;     /* tokens sampled */
  uint64_t recomputed_tokens; /* computed again after a preemption */
  uint64_t drafted_tokens, accepted_tokens;
  uint64_t finished;    /* requests that ended, for any reason */
  uint64_t preemptions; /* requests preempted because pages ran out */
  int32_t waiting, prefilling, running;
  int32_t pages_total, pages_free; /* of the KV cache, page_size tokens each */
  int32_t pages_cached;            /* free pages with prefixes that no request uses */
  int32_t page_size;
  double model_seconds;  /* wall time inside the compiled model */
  double sample_seconds; /* from logits to tokens */
  double host_seconds;   /* planning, and updating requests */
  double step_seconds;   /* since the step in flight began; 0: no step */
  uint64_t failed_steps; /* consecutive failures up to the last step; each failed its requests. On a
                            lost device every step fails */
  uint64_t candidate_rows;   /* rows that were sampled from the device's candidates */
  uint64_t whole_rows;       /* rows that were sampled from all logits: always on a CPU */
  uint64_t readback_bytes;   /* bytes of results copied from a device */
  double overlapped_seconds; /* the part of sample_seconds and host_seconds during which the device
                                computed a step */
  uint64_t chained_steps;    /* launched ahead: before the previous step was read, with tokens that
                                the device drew */
  uint64_t vain_rows;        /* wasted rows of these: for a rejected token or an ended request */
  uint64_t graph_steps;      /* replayed as CUDA graphs */
  const char* graphs_given_up; /* why graphs were turned off, which costs speed only; null: they
                                  were not. Owned by the engine */
  const char* chains_given_up; /* the same for launch-ahead */
  uint64_t disk_dropped;       /* prefix blocks that were not written to "cache_dir" */
  const char* disk_problem;    /* why writes to it fail at the moment, which costs speed only; null:
                                  they do not. Owned by the engine */
} wherry_stats;

WHERRY_API int wherry_abi_version(void); /* WHERRY_ABI_VERSION of the library */
WHERRY_API const char* wherry_last_error(void);

/*
 * lib: path of a compiled library, or "system:<prefix>" for one linked into the program.
 * weights: folder with tensor-cache.json and its shards.
 * device: "cpu" or "<kind>:<index>".
 * options_json, all optional: {"threads": int, "pack_dir": folder for the packed weights,
 *  "check_weights": 1 (default) compares them with the checksums in that folder, 0 does not,
 *  "cuda_graphs": 1 (default) captures decode steps of equal sizes as CUDA graphs and replays
 *   them, 0 does not}
 */
WHERRY_API int wherry_model_load(const char* lib, const char* weights, const char* device,
                                 const char* options_json, wherry_model** out);
/* Engines keep references to their model: it may be freed before them. */
WHERRY_API int wherry_model_free(wherry_model* model);
/* The library's metadata, JSON; owned by the model. */
WHERRY_API const char* wherry_model_metadata(const wherry_model* model);

/*
 * Loads a model whose weights the caller provides, for browsers, which have no files to open.
 *
 * lib, device, options_json: as wherry_model_load; index: the text of tensor-cache.json.
 */
WHERRY_API int wherry_loader_create(const char* lib, const char* index, const char* device,
                                    const char* options_json, wherry_loader** out);
WHERRY_API int wherry_loader_free(wherry_loader* loader);
/*
 * The stored tensors that the library needs, in the order of their bytes; JSON, owned by the
 * loader:
 * [{"shard": "params_shard_0.bin", "offset": bytes, "nbytes": as stored, "bf16": whether these are
 *  the upper halves of float32 values, which the caller widens}]
 */
WHERRY_API const char* wherry_loader_tensors(const wherry_loader* loader);
/* *data: the memory for tensor `i` of these; an address, or the device's handle. */
WHERRY_API int wherry_loader_place(wherry_loader* loader, size_t i, void** data);
/* Call it when tensor `i` is filled: later device commands must see its bytes. Packs what is
 * complete. */
WHERRY_API int wherry_loader_filled(wherry_loader* loader, size_t i);
/* Call it when all are filled. Afterwards the loader can only be freed. */
WHERRY_API int wherry_loader_finish(wherry_loader* loader, wherry_model** out);

/*
 * draft: a smaller model with the same vocabulary that proposes draft tokens, or null.
 * config_json, all optional, unknown keys are errors:
 * {"max_batch": sequences decoded together (8),
 *  "context": tokens of one request (the library's),
 *  "kv_tokens": capacity of the KV cache (max_batch * context; memory is committed on first use),
 *  "prefill_chunk": rows (tokens) of one step at most, at least max_batch (256),
 *  "prefix_cache": whether requests share the KV cache of common prefixes (true),
 *  "cache_dir": folder for the prefix cache on disk, which outlives the process (none),
 *  "cache_bytes": limit for its size (1 GiB),
 *  "max_drafts": draft tokens for a request that sets no number (0; with a draft model 4),
 *  "max_slowdown": prefill chunks may lengthen a step of running requests by this factor (2),
 *  "max_step_seconds": they may not lengthen a step beyond this, as far as known (0: no limit)}
 */
WHERRY_API int wherry_engine_create(wherry_model* model, wherry_model* draft,
                                    const char* config_json, wherry_engine** out);
/* Stops the engine's thread and wakes callers of wherry_engine_wait; no later call may use it. */
WHERRY_API int wherry_engine_destroy(wherry_engine* engine);
/* Aborts every request (their WHERRY_ABORTED events are queued), clears cache and stats. */
WHERRY_API int wherry_engine_reset(wherry_engine* engine);
/* Evicts cached prefixes that no request uses (not those on disk), to free memory. */
WHERRY_API int wherry_engine_clear_cache(wherry_engine* engine);

WHERRY_API void wherry_params_init(wherry_params* params);
/*
 * Queues a request. n tokens, 1 <= n < context, or n <= context to embed them; prompt and output
 * together end with the context.
 * `id` must not be in use; it is free again once its last event is queued. A request that exceeds
 * the whole KV cache is rejected; one that does not fit now waits.
 */
WHERRY_API int wherry_engine_add(wherry_engine* engine, uint64_t id, const int32_t* tokens,
                                 size_t n, const wherry_params* params);
/*
 * Ends a request with WHERRY_ABORTED, now or after the step in flight. WHERRY_NOT_FOUND if it has
 * ended already.
 */
WHERRY_API int wherry_engine_abort(wherry_engine* engine, uint64_t id);

/*
 * One step: launch plans one mixed batch (decode rows first, then prefill chunks up to the token
 * budget), and starts it with the copy of its results; collect waits for them, samples, and returns
 * events. *n is the number written; events beyond cap stay queued for the next call. launch with
 * nothing to do returns WHERRY_OK, and the following collect returns queued events.
 */
WHERRY_API int wherry_engine_launch(wherry_engine* engine);
WHERRY_API int wherry_engine_collect(wherry_engine* engine, wherry_event* events, size_t cap,
                                     size_t* n);
WHERRY_API int wherry_engine_step(wherry_engine* engine, wherry_event* events, size_t cap,
                                  size_t* n);
/*
 * Call it between launch and collect, after the device has finished its commands. *ready = 0:
 * collect needs more results, which this call requested; 1: it has all. Only browsers need it,
 * where no call can wait for a device; elsewhere *ready is always 1.
 */
WHERRY_API int wherry_engine_ready(wherry_engine* engine, int* ready);

/* Starts the engine's own thread, which steps while there is work and sleeps otherwise. */
WHERRY_API int wherry_engine_start(wherry_engine* engine);
/* Stops the thread after the step in flight; requests stay. */
WHERRY_API int wherry_engine_stop(wherry_engine* engine);
/* Waits until there is an event, or timeout_ms passed (then *n is 0); -1: no timeout. */
WHERRY_API int wherry_engine_wait(wherry_engine* engine, wherry_event* events, size_t cap,
                                  int timeout_ms, size_t* n);
/*
 * Wakes one wherry_engine_wait, which returns *n = 0 or new events. If no thread waits, the next
 * wherry_engine_wait returns at once.
 */
WHERRY_API int wherry_engine_wake(wherry_engine* engine);

WHERRY_API int wherry_engine_stats(wherry_engine* engine, wherry_stats* out);

/*
 * Grammars: masks that constrain an output to a JSON Schema, a regular expression, or a
 * context-free grammar. llguidance (version 1) implements them, and only these functions load it: a
 * program that does not call them does not need it.
 *
 * library: its path. The n tokens' bytes are concatenated; a token of length 0 matches no text. A
 * longer token that begins with the byte 0xff is special: it matches no text either, but a grammar
 * of kind "lark" can name it, without that byte.
 */
WHERRY_API int wherry_vocabulary_create(const char* library, const uint8_t* bytes,
                                        const uint32_t* lengths, size_t n, wherry_vocabulary** out);
/* Grammars keep references to their vocabulary, and masks to their grammar. */
WHERRY_API int wherry_vocabulary_free(wherry_vocabulary* vocabulary);
/*
 * kind: "json_schema", "regex" (the whole output matches), or "lark" (a grammar whose first rule is
 * `start`). WHERRY_INVALID_ARGUMENT names what is wrong in the text, or cannot be enforced. It
 * takes milliseconds, but for some texts seconds and a large stack: a server should call it outside
 * of the thread that handles requests, and limit untrusted text first.
 */
WHERRY_API int wherry_grammar_compile(const wherry_vocabulary* vocabulary, const char* kind,
                                      const char* text, wherry_grammar** out);
WHERRY_API int wherry_grammar_free(wherry_grammar* grammar);
/*
 * Creates the mask of one request, for wherry_params. Thread-safe. stop_ids: tokens that may end
 * the output, only where the grammar is complete; where nothing may follow, the request ends by
 * itself. The caller must release a mask that it does not pass to wherry_engine_add.
 */
WHERRY_API int wherry_grammar_mask(const wherry_grammar* grammar, const int32_t* stop_ids,
                                   size_t n_stop_ids, wherry_mask* out);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_H_ */
