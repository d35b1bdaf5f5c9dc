/*
 * The C ABI of Wherry's core: tokens in, tokens out.
 *
 * No tokenizer, no templates, no protocol. Every call returns 0, or a negative wherry_status whose
 * text wherry_last_error() gives (per thread). No exception crosses this border. An engine may be
 * used from several threads; the calls are serialised inside.
 *
 * Records that grow with versions begin with `size`: what the caller was compiled with. A field
 * that the caller does not know has the value that asks for nothing.
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
  WHERRY_INCOMPATIBLE = -4, /* the library or the weights are not what this core reads */
  WHERRY_BUSY = -5,         /* step called while the engine's own thread runs, or out of order */
  WHERRY_INTERNAL = -6,     /* our bug, or an error raised inside the compiled model */
  WHERRY_NO_SPACE = -10     /* the disk has no room; -7 to -9 are in wherry_app.h */
} wherry_status;

typedef enum {
  WHERRY_RUNNING = 0, /* more tokens follow */
  WHERRY_STOP = 1,    /* a stop id was sampled (the event's token), or the grammar is complete */
  WHERRY_LENGTH = 2,  /* max_tokens or the context is used up; the token belongs to the output */
  WHERRY_ABORTED = 3, /* wherry_engine_abort; token is -1 */
  WHERRY_ERROR = 4,   /* the step failed; token is -1; wherry_last_error on the collecting thread */
  WHERRY_DONE = 5     /* an embedding is there; token is -1 */
} wherry_finish;

/*
 * Which tokens may come next in one request: a grammar's matcher, say. The core calls it from one
 * thread at a time, mostly while the device computes. Every function returns 0, or a negative
 * number: then the request ends with WHERRY_ERROR, and `error` may say why.
 */
typedef struct {
  size_t size; /* sizeof(wherry_mask) */
  void* context;
  /* Sets bit t % 32 of bits[t / 32] for each token t that may come next, clears the others; bits is
   * [ceil(vocab / 32)]. *all = 1 in place of that where every token may come. */
  int (*fill)(void* context, uint32_t* bits, size_t words, int* all);
  /* `token` has been sampled. *complete = 1: the output must end here. */
  int (*accept)(void* context, int32_t token, int* complete);
  /* Optional. Tokens that must come next whatever the model says, at most cap: *n of them. */
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
  int32_t dry_range;           /* tokens that are looked back; 0: all */
  const int32_t* dry_breakers; /* token ids over which no repetition goes */
  size_t n_dry_breakers;
  uint64_t seed;            /* the request's own generator */
  const int32_t* bias_ids;  /* [n_bias] */
  const float* bias_values; /* [n_bias], added to the logits; -inf forbids */
  size_t n_bias;
  const int32_t* allowed; /* [n_allowed] no other token may come; none: all may */
  size_t n_allowed;
  const int32_t* bad_words;       /* sequences that may not be completed, one after the other */
  const size_t* bad_word_lengths; /* [n_bad_words], each at least 1 */
  size_t n_bad_words;
  const wherry_mask* mask; /* null: every token may come. Owned by the core from wherry_engine_add
                              on, also where that fails: `release` is called once */

  /* what events hold */
  int32_t top_logprobs;    /* 0..WHERRY_MAX_TOP_LOGPROBS alternatives in each event */
  int32_t prompt_logprobs; /* -1: none; else an event with so many alternatives for each prompt
                              token but the first, before the output's */

  /* scheduling */
  int32_t priority; /* higher goes first */
  uint64_t user;    /* requests of one user share one place in the queue's order; users whose upper
                       32 bits are equal are one tenant's, who shares it with other tenants */
  uint64_t salt;    /* only requests of equal salt share cached prefixes */
  int32_t adapter;  /* of the library's adapters; 0 is none */

  /* speculation: does not change the tokens, only the time they take */
  int32_t max_drafts;        /* draft tokens a step: 0 none, -1 the engine's choice */
  const int32_t* prediction; /* [n_prediction] what the output is likely to repeat */
  size_t n_prediction;

  /* other kinds of requests */
  int32_t embed;         /* 1: no output; one event with the prompt's embedding */
  const int32_t* source; /* [n_source] what an encoder reads, for models that have one */
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
  /* of the request so far */
  int32_t cached_tokens;   /* of its prompt, found in the prefix cache */
  int32_t drafted_tokens;  /* verified */
  int32_t accepted_tokens; /* of them, right */
  float queue_seconds;     /* from wherry_engine_add to its first step */
  float prefill_seconds;   /* from there to its first token */
  float decode_seconds;    /* from there to this event */
  /* WHERRY_DONE: float32 [n_embedding], valid until the engine hands out events again */
  const float* embedding;
  int64_t n_embedding;
} wherry_event;

typedef struct {
  size_t size;                /* sizeof(wherry_stats), set by the caller */
  uint64_t steps;             /* model runs since creation or reset */
  uint64_t prompt_tokens;     /* of the requests that were admitted */
  uint64_t prefill_tokens;    /* of them, computed */
  uint64_t cached_tokens;     /* of them, found in the prefix cache: in memory or on disk */
  uint64_t disk_tokens;       /* of these, read from disk */
  uint64_t decode_tokens;     /* tokens sampled */
  uint64_t recomputed_tokens; /* after a preemption */
  uint64_t drafted_tokens, accepted_tokens;
  uint64_t finished;    /* requests ended, whatever the reason */
  uint64_t preemptions; /* requests preempted because pages ran out */
  int32_t waiting, prefilling, running;
  int32_t pages_total, pages_free; /* of the KV cache, page_size tokens each */
  int32_t pages_cached;            /* of the free ones: hold prefixes that no request uses */
  int32_t page_size;
  double model_seconds;    /* wall time inside the compiled model */
  double sample_seconds;   /* from logits to tokens */
  double host_seconds;     /* planning, and moving requests on */
  double step_seconds;     /* since the step under way began; 0: none is */
  uint64_t failed_steps;   /* in a row, up to the last one: each ended its requests with an error. A
                              device that was lost fails them all */
  uint64_t candidate_rows; /* rows of logits whose token came from what the device made of them */
  uint64_t whole_rows;     /* from the rows themselves: always on a CPU */
  uint64_t readback_bytes; /* of results, brought from a device */
  double overlapped_seconds; /* of sample_seconds and host_seconds, while a device had a step to
                                compute */
  uint64_t chained_steps;    /* launched before the step before them was read, with tokens that the
                                device took from it */
  uint64_t vain_rows;   /* of them, for a token that was another, or a request that had ended */
  uint64_t graph_steps; /* launched as one command: CUDA graphs */
  const char* graphs_given_up; /* why none is any more, which costs speed alone; null: nothing has
                                  gone wrong. The engine's own */
  const char*
      chains_given_up;      /* as that, of steps that are launched before the last one was read */
  uint64_t disk_dropped;    /* blocks of prefixes that "cache_dir" did not get */
  const char* disk_problem; /* why it gets none at the moment, which costs speed alone; null: it
                               does. The engine's own */
} wherry_stats;

WHERRY_API int wherry_abi_version(void); /* WHERRY_ABI_VERSION of the library */
WHERRY_API const char* wherry_last_error(void);

/*
 * lib: path of a compiled library, or "system:<prefix>" for one linked into the program.
 * weights: folder with tensor-cache.json and its shards.
 * device: "cpu" or "<kind>:<index>".
 * options_json, all optional: {"threads": int, "pack_dir": folder for the packed weights,
 *  "check_weights": 1 (default) compares them with the checksums in that folder, 0 does not,
 *  "cuda_graphs": 1 (default) launches decode steps of the same sizes as one command where the
 *   device is CUDA's, 0 does not}
 */
WHERRY_API int wherry_model_load(const char* lib, const char* weights, const char* device,
                                 const char* options_json, wherry_model** out);
/* Engines keep what they need of their model: the order of freeing does not matter. */
WHERRY_API int wherry_model_free(wherry_model* model);
/* The library's metadata, JSON; owned by the model. */
WHERRY_API const char* wherry_model_metadata(const wherry_model* model);

/*
 * A model whose weights the caller brings, where there are no files to open: in browsers.
 *
 * lib, device, options_json: as wherry_model_load; index: the text of tensor-cache.json.
 */
WHERRY_API int wherry_loader_create(const char* lib, const char* index, const char* device,
                                    const char* options_json, wherry_loader** out);
WHERRY_API int wherry_loader_free(wherry_loader* loader);
/*
 * The stored tensors that the library takes, in the order of their bytes; JSON, owned by the
 * loader:
 * [{"shard": "params_shard_0.bin", "offset": bytes, "nbytes": as stored, "bf16": whether these are
 *  the upper halves of float32 values, to be widened}]
 */
WHERRY_API const char* wherry_loader_tensors(const wherry_loader* loader);
/* *data: where tensor `i` of these goes; an address, or what the device takes for one. */
WHERRY_API int wherry_loader_place(wherry_loader* loader, size_t i, void** data);
/* Its bytes are there: a device's commands from here on find them. Packs what is complete. */
WHERRY_API int wherry_loader_filled(wherry_loader* loader, size_t i);
/* When all are filled; the loader is of no use then, and is to be freed. */
WHERRY_API int wherry_loader_finish(wherry_loader* loader, wherry_model** out);

/*
 * draft: a smaller model with the same vocabulary that proposes draft tokens, or null.
 * config_json, all optional, unknown keys are errors:
 * {"max_batch": sequences decoded together (8),
 *  "context": tokens of one request (the library's),
 *  "kv_tokens": tokens of the cache in all (max_batch * context; memory is taken as it is used),
 *  "prefill_chunk": rows (tokens) of one step at most, at least max_batch (256),
 *  "prefix_cache": whether prompts are looked up in what earlier requests left (true),
 *  "cache_dir": folder in which cached prefixes outlive the process (none),
 *  "cache_bytes": that it may take (1 GiB),
 *  "max_drafts": draft tokens of a request that does not say (0; with a draft model 4),
 *  "max_slowdown": a prompt's chunks may make a running request's step longer by this factor (2),
 *  "max_step_seconds": they may make no step longer than this, so far as time is measured (0: any)}
 */
WHERRY_API int wherry_engine_create(wherry_model* model, wherry_model* draft,
                                    const char* config_json, wherry_engine** out);
/* Stops the engine's thread and releases those in wherry_engine_wait; no later call may use it. */
WHERRY_API int wherry_engine_destroy(wherry_engine* engine);
/* Aborts every request (their WHERRY_ABORTED events are queued), clears cache and stats. */
WHERRY_API int wherry_engine_reset(wherry_engine* engine);
/* Forgets cached prefixes that no request uses (not those on disk): when memory is short. */
WHERRY_API int wherry_engine_clear_cache(wherry_engine* engine);

WHERRY_API void wherry_params_init(wherry_params* params);
/*
 * Queues a request. n tokens, 1 <= n < context, or n <= context to embed them; prompt and output
 * together end with the context.
 * `id` must not be in use; it is free again once its last event is queued. A request that the
 * whole cache could not hold is refused; one that it cannot hold now waits.
 */
WHERRY_API int wherry_engine_add(wherry_engine* engine, uint64_t id, const int32_t* tokens,
                                 size_t n, const wherry_params* params);
/*
 * Ends a request with WHERRY_ABORTED: now, or when the step under way is over. WHERRY_NOT_FOUND if
 * it has ended already.
 */
WHERRY_API int wherry_engine_abort(wherry_engine* engine, uint64_t id);

/*
 * One step: launch plans one mixed batch (decode rows first, then prefill chunks up to the token
 * budget), starts it, and asks the device for its results; collect waits for them, samples, and
 * hands out the events. *n is the number written; events beyond cap stay queued for the next call.
 * launch with nothing to do is WHERRY_OK and the following collect gives what is queued.
 */
WHERRY_API int wherry_engine_launch(wherry_engine* engine);
WHERRY_API int wherry_engine_collect(wherry_engine* engine, wherry_event* events, size_t cap,
                                     size_t* n);
WHERRY_API int wherry_engine_step(wherry_engine* engine, wherry_event* events, size_t cap,
                                  size_t* n);
/*
 * Between launch and collect, when the device has done what it was asked for: *ready = 0 if more of
 * its results are wanted, and were asked for now; 1: collect will find all. Needed where no call
 * can wait for a device, which is in browsers; elsewhere always 1.
 */
WHERRY_API int wherry_engine_ready(wherry_engine* engine, int* ready);

/* A thread of the engine's own steps while there is work, and sleeps otherwise. */
WHERRY_API int wherry_engine_start(wherry_engine* engine);
/* Finishes the step under way; requests stay. */
WHERRY_API int wherry_engine_stop(wherry_engine* engine);
/* Waits until there is an event, or timeout_ms passed (then *n is 0); -1 waits for ever. */
WHERRY_API int wherry_engine_wait(wherry_engine* engine, wherry_event* events, size_t cap,
                                  int timeout_ms, size_t* n);
/*
 * Wakes one wherry_engine_wait, which then gives *n = 0, or the events that came meanwhile. Kept
 * for the next wherry_engine_wait if none waits.
 */
WHERRY_API int wherry_engine_wake(wherry_engine* engine);

WHERRY_API int wherry_engine_stats(wherry_engine* engine, wherry_stats* out);

/*
 * Grammars: masks that hold an output to a JSON Schema, a regular expression, or a context-free
 * grammar. They are llguidance's (version 1), which is opened here and nowhere else: a program
 * that calls none of this does not need it.
 *
 * library: its path. The n tokens' bytes lie one after the other; a token of length 0 matches no
 * text, and one that begins with the byte 0xff and goes on is special: no text matches it either,
 * but a grammar of kind "lark" can name it, without that byte.
 */
WHERRY_API int wherry_vocabulary_create(const char* library, const uint8_t* bytes,
                                        const uint32_t* lengths, size_t n, wherry_vocabulary** out);
/* Grammars keep what they need of their vocabulary, and masks of their grammar. */
WHERRY_API int wherry_vocabulary_free(wherry_vocabulary* vocabulary);
/*
 * kind: "json_schema", "regex" (the whole output matches), or "lark" (a grammar whose first rule is
 * `start`). WHERRY_INVALID_ARGUMENT says what in the text is wrong, or cannot be enforced. Takes
 * milliseconds, for some texts seconds and much stack: a server asks elsewhere than in the thread
 * of its requests, and limits untrusted text before.
 */
WHERRY_API int wherry_grammar_compile(const wherry_vocabulary* vocabulary, const char* kind,
                                      const char* text, wherry_grammar** out);
WHERRY_API int wherry_grammar_free(wherry_grammar* grammar);
/*
 * The mask of one request, for wherry_params. Any thread, several at a time. stop_ids: what may
 * end the output, and only where the grammar is complete; where nothing may follow, the request
 * ends by itself. A record that no wherry_engine_add gets must be released by the caller.
 */
WHERRY_API int wherry_grammar_mask(const wherry_grammar* grammar, const int32_t* stop_ids,
                                   size_t n_stop_ids, wherry_mask* out);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_H_ */
