/*
 * The C ABI of Wherry's core: tokens in, tokens out.
 *
 * No tokenizer, no templates, no protocol. Every call returns 0, or a negative core_status whose
 * text core_last_error() gives (per thread). No exception crosses this border. An engine may be
 * used from several threads; the calls are serialised inside.
 */
#ifndef WHERRY_H_
#define WHERRY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define WHERRY_API __declspec(dllexport)
#else
#define WHERRY_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WHERRY_ABI_VERSION 1

typedef struct core_model core_model;
typedef struct core_engine core_engine;

typedef enum {
  CORE_OK = 0,
  CORE_INVALID_ARGUMENT = -1, /* the caller's mistake; nothing was changed */
  CORE_NOT_FOUND = -2,        /* no such file, function or request */
  CORE_OUT_OF_MEMORY = -3,
  CORE_INCOMPATIBLE = -4, /* the library or the weights are not what this core reads */
  CORE_BUSY = -5,         /* step called while the engine's own thread runs, or out of order */
  CORE_INTERNAL = -6      /* our bug, or an error raised inside the compiled model */
} core_status;

typedef enum {
  CORE_RUNNING = 0, /* more tokens follow */
  CORE_STOP = 1,    /* a stop id was sampled; the event's token is that id */
  CORE_LENGTH = 2,  /* max_tokens or the context is used up; the token belongs to the output */
  CORE_ABORTED = 3, /* core_abort; token is -1 */
  CORE_ERROR = 4    /* the step failed; token is -1; core_last_error on the collecting thread */
} core_finish;

/* Sampling and limits of one request. Zero-initialise, then call core_params_init. */
typedef struct {
  int32_t max_tokens;       /* >= 1, or 0: until the context ends */
  float temperature;        /* >= 0; 0 is greedy */
  float top_p;              /* (0, 1] */
  int32_t top_k;            /* 0: all */
  float min_p;              /* [0, 1) share of the most likely token's probability */
  float repetition_penalty; /* > 0; 1 is none; over prompt and output */
  float presence_penalty;   /* 0 is none; over the output */
  float frequency_penalty;  /* 0 is none; over the output */
  uint64_t seed;            /* the request's own generator */
  const int32_t* stop_ids;  /* [n_stop_ids], copied by core_add */
  size_t n_stop_ids;
  const int32_t* bias_ids;  /* [n_bias], copied by core_add */
  const float* bias_values; /* [n_bias], added to the logits */
  size_t n_bias;
  int32_t top_logprobs; /* 0..CORE_MAX_TOP_LOGPROBS alternatives in each event */
} core_params;

#define CORE_MAX_TOP_LOGPROBS 20

/* Fixed size, so that a host pulls a batch of them into one array. */
typedef struct {
  uint64_t id;
  int32_t token;  /* -1: none */
  int32_t finish; /* core_finish */
  float logprob;  /* natural logarithm, of the unscaled distribution (temperature 1) */
  int32_t n_top;  /* how many of the two arrays below are set */
  int32_t top_ids[CORE_MAX_TOP_LOGPROBS];
  float top_logprobs[CORE_MAX_TOP_LOGPROBS];
} core_event;

typedef struct {
  uint64_t steps;          /* model runs since creation or reset */
  uint64_t prefill_tokens; /* prompt tokens computed */
  uint64_t decode_tokens;  /* tokens sampled */
  uint64_t finished;       /* requests ended, whatever the reason */
  int32_t waiting, prefilling, running;
  int32_t pages_total, pages_free; /* of the KV cache, page_size tokens each */
  int32_t page_size;
  double model_seconds; /* wall time inside the compiled model */
  double sample_seconds;
} core_stats_t;

WHERRY_API int core_version(void); /* WHERRY_ABI_VERSION of the library */
WHERRY_API const char* core_last_error(void);

/*
 * lib: path of a compiled library, or "system:<prefix>" for one linked into the program.
 * weights: folder with tensor-cache.json and its shards.
 * device: "cpu" or "<kind>:<index>".
 * options_json: {"threads": int, "pack_dir": folder for the packed weights}; null or "{}" for none.
 */
WHERRY_API int core_model_load(const char* lib, const char* weights, const char* device,
                               const char* options_json, core_model** out);
/* Engines keep what they need of their model: the order of freeing does not matter. */
WHERRY_API int core_model_free(core_model* model);
/* The library's metadata, JSON; owned by the model. */
WHERRY_API const char* core_model_metadata(const core_model* model);

/*
 * draft: null (speculation comes later). config_json, all optional, unknown keys are errors:
 * {"max_batch": rows decoded together (8), "context": tokens of one request (the library's),
 *  "kv_tokens": tokens of the cache in all (max_batch * context; memory is taken as it is used),
 *  "prefill_chunk": token budget of one step, at least max_batch (256)}
 */
WHERRY_API int core_create(core_model* model, core_model* draft, const char* config_json,
                           core_engine** out);
/* Stops the engine's thread and releases those in core_wait_events; no later call may use it. */
WHERRY_API int core_destroy(core_engine* engine);
/* Aborts every request (their CORE_ABORTED events are queued), clears cache and stats. */
WHERRY_API int core_reset(core_engine* engine);

WHERRY_API void core_params_init(core_params* params);
/*
 * Queues a request. n tokens, 1 <= n < context; prompt and output together end with the context.
 * `id` must not be in use; it is free again once its last event is queued. A request that the
 * whole cache could not hold is refused; one that it cannot hold now waits.
 */
WHERRY_API int core_add(core_engine* engine, uint64_t id, const int32_t* tokens, size_t n,
                        const core_params* params);
/*
 * Ends a request with CORE_ABORTED: now, or when the step under way is over. CORE_NOT_FOUND if it
 * has ended already.
 */
WHERRY_API int core_abort(core_engine* engine, uint64_t id);

/*
 * One step: plans one mixed batch (decode rows first, then prefill chunks up to the token budget)
 * and starts it; collect waits for it, samples, and hands out the events. *n is the number
 * written; events beyond cap stay queued for the next call. launch with nothing to do is CORE_OK
 * and the following collect gives what is queued.
 */
WHERRY_API int core_step_launch(core_engine* engine);
WHERRY_API int core_step_collect(core_engine* engine, core_event* events, size_t cap, size_t* n);
WHERRY_API int core_step(core_engine* engine, core_event* events, size_t cap, size_t* n);

/* A thread of the engine's own steps while there is work, and sleeps otherwise. */
WHERRY_API int core_start(core_engine* engine);
WHERRY_API int core_stop(core_engine* engine); /* finishes the step under way; requests stay */
/* Waits until there is an event, or timeout_ms passed (then *n is 0); -1 waits for ever. */
WHERRY_API int core_wait_events(core_engine* engine, core_event* events, size_t cap, int timeout_ms,
                                size_t* n);
/*
 * Wakes one core_wait_events, which then gives *n = 0, or the events that came meanwhile. Kept for
 * the next core_wait_events if none waits.
 */
WHERRY_API int core_wake(core_engine* engine);

WHERRY_API int core_stats(core_engine* engine, core_stats_t* out);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_H_ */
