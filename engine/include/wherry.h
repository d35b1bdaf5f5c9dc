/*
 * The C ABI of Wherry's core: tokens in, tokens out.
 *
 * The core has no tokenizer, no templates and no protocol. Functions that return int return
 * WHERRY_OK (0) or a negative wherry_status; wherry_last_error() then returns the message of the
 * calling thread's last error. No function throws. Several threads may use an engine, which
 * serialises their calls.
 *
 * Records that grow with versions begin with `size`, the size of the record that the caller was
 * compiled with. Fields beyond it get their defaults.
 */
#ifndef WHERRY_H_
#define WHERRY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define WHERRY_API __declspec(dllexport)
#elif defined(__EMSCRIPTEN__) /* the linker exports the functions, too */
#define WHERRY_API __attribute__((used, visibility("default")))
#else
#define WHERRY_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WHERRY_ABI_VERSION 3

typedef struct wherry_model wherry_model;
typedef struct wherry_loader wherry_loader;
typedef struct wherry_engine wherry_engine;
typedef struct wherry_vocabulary wherry_vocabulary;
typedef struct wherry_grammar wherry_grammar;

typedef enum {
  WHERRY_OK = 0,
  WHERRY_INVALID_ARGUMENT = -1, /* the caller made a mistake; the call changed nothing */
  WHERRY_NOT_FOUND = -2,        /* the file, function or request does not exist */
  WHERRY_OUT_OF_MEMORY = -3,
  WHERRY_INCOMPATIBLE = -4, /* the core cannot read this library or these weights */
  WHERRY_BUSY = -5,     /* step was called while the engine's own thread runs, or out of order */
  WHERRY_INTERNAL = -6, /* a bug of the core, or an error inside the compiled model */
  WHERRY_NO_SPACE = -10 /* the disk is full; -7 to -9 are in wherry_app.h */
} wherry_status;

typedef enum {
  WHERRY_RUNNING = 0, /* the request is running; more tokens follow */
  WHERRY_STOP = 1,    /* a stop id was sampled (the event's token), or the grammar is complete */
  WHERRY_LENGTH = 2,  /* max_tokens or the context is used up; the token belongs to the output */
  WHERRY_ABORTED = 3, /* wherry_engine_abort ended the request; token is -1 */
  /* The step failed; token is -1; wherry_last_error on the collecting thread has the reason. */
  WHERRY_ERROR = 4,
  WHERRY_DONE = 5 /* the embedding is complete; token is -1 */
} wherry_finish;

/*
 * A grammar mask of the caller: which tokens one request allows next. The core calls its functions
 * from one thread at a time, mostly while the device computes. Every function returns 0, or a
 * negative number, which ends the request with WHERRY_ERROR; `error` may give the reason.
 */
typedef struct {
  size_t size; /* sizeof(wherry_mask) */
  void* context;
  /*
   * Sets bit t % 32 of bits[t / 32] for each allowed token t and clears the other bits; bits is
   * [words], words is ceil(vocab / 32). If every token is allowed, it may set *all = 1 instead.
   */
  int (*fill)(void* context, uint32_t* bits, size_t words, int* all);
  /* Advances by the sampled `token`. Sets *complete = 1 if the output must end with this token. */
  int (*accept)(void* context, int32_t token, int* complete);
  /*
   * Optional (may be null). Writes the tokens that the grammar forces next, at most cap, and their
   * number to *n.
   */
  int (*forced)(void* context, int32_t* tokens, size_t cap, size_t* n);
  /*
   * Optional (may be null). Returns the reason of the last failure; the text is valid until the
   * next call.
   */
  const char* (*error)(void* context);
  /* Optional (may be null). Frees the mask when the request is over; no call follows. */
  void (*release)(void* context);
} wherry_mask;

/*
 * A part of the prompt whose rows get what the model's tower computes of a tile of an image (or of
 * the image, where the model does not split images), in place of the embeddings of the tokens.
 * Several parts may show parts of one tile: their digests, patches and `features` are equal.
 */
typedef struct {
  size_t first; /* index of the part's first token in the prompt */
  size_t rows;  /* tokens of the part */
  /* Hash of all that the tower computes the tile's features from: pixels, their places and the
   * settings of their preparation. Tiles with equal digests are computed once, and only they share
   * cached prefixes. */
  uint8_t digest[32];
  const uint8_t* patches; /* [n_patches, patch_bytes] levels, by channel, then row, then column */
  size_t n_patches;
  size_t patch_bytes;  /* levels of a patch: 3 channels of its pixels */
  const float* levels; /* [3, 256] the value of each level of each channel */
  /* [n_patches, taps] rows of the tower's table of positions; null if the tower takes none */
  const int32_t* positions;
  size_t taps; /* rows of the table that make the position of a patch; 0 means 1 */
  /* [n_patches, taps] the weight of each of these rows; null if the tower takes none */
  const float* position_weights;
  /* [n_patches, 2] row and column of each patch in its tile; null if the tower takes none */
  const int32_t* coordinates;
  size_t first_feature; /* the part's first row of the tile's features */
  size_t features;      /* rows of features of the tile; 0 means `rows` */
  /* The part's rows on the axes of M-RoPE: rows == grid_rows * grid_columns. 0 and 0: the positions
   * of the rows advance as those of text do. */
  size_t grid_rows, grid_columns;
} wherry_image;

/*
 * The parameters of one request. Call wherry_params_init, then set the fields that differ;
 * wherry_engine_add copies the arrays.
 */
typedef struct {
  size_t size; /* sizeof(wherry_params); wherry_params_init sets it */

  /* limits of the output */
  int32_t max_tokens; /* upper bound on output tokens, >= 1, or 0 for the rest of the context */
  int32_t min_tokens; /* stop ids are not sampled before this number of output tokens */
  const int32_t* stop_ids;
  size_t n_stop_ids;

  /* sampling; engine/sampling/sampler.h gives the order in which the fields apply */
  float temperature;      /* >= 0; 0 samples greedily */
  float dynamic_range;    /* >= 0: range of a temperature that follows the entropy; 0: off */
  float dynamic_exponent; /* > 0: exponent of the normalised entropy */
  float top_p;            /* (0, 1], least share of the kept tokens' probability; 1 turns it off */
  int32_t top_k;          /* number of most likely tokens to keep; 0 keeps all */
  float min_p;            /* [0, 1): least share of the most likely token's probability */
  float typical_p;        /* (0, 1]; 1 turns it off */
  float top_n_sigma;      /* >= 0, in standard deviations of the logits; 0 turns it off */
  float xtc_probability;  /* [0, 1]; 0 turns XTC off */
  float xtc_threshold;    /* (0, 0.5], probability from which a token counts as top */
  float mirostat_tau;     /* > 0: mirostat 2 with this surprise in bits; 0 turns it off */
  float mirostat_eta;     /* (0, 1], learning rate of mirostat 2 */
  float repetition_penalty;    /* > 0, over prompt and output; 1 turns it off */
  float presence_penalty;      /* over the output; 0 turns it off */
  float frequency_penalty;     /* over the output; 0 turns it off */
  float dry_multiplier;        /* >= 0; 0 turns DRY off */
  float dry_base;              /* >= 1, base of the DRY penalty's growth */
  int32_t dry_allowed_length;  /* >= 1 tokens that may repeat without a penalty */
  int32_t dry_range;           /* number of last tokens to search for repetitions; 0 searches all */
  const int32_t* dry_breakers; /* token ids that end a repetition */
  size_t n_dry_breakers;
  uint64_t seed;            /* seed of the request's own random number generator */
  const int32_t* bias_ids;  /* [n_bias] token ids */
  const float* bias_values; /* [n_bias], added to the logits; -inf forbids a token */
  size_t n_bias;
  const int32_t* allowed; /* [n_allowed] the only allowed tokens; n_allowed = 0 allows all */
  size_t n_allowed;
  const int32_t* bad_words;       /* concatenated token sequences that the output must not have */
  const size_t* bad_word_lengths; /* [n_bad_words], each at least 1 */
  size_t n_bad_words;
  /* Null if every token is allowed. wherry_engine_add takes ownership, even if it fails: the
   * core calls `release` once. */
  const wherry_mask* mask;

  /* what events contain */
  /* 0..WHERRY_MAX_TOP_LOGPROBS: number of alternative tokens in each event. */
  int32_t top_logprobs;
  /* -1 for none; else each prompt token but the first gets an event, with this number of
   * alternatives, before the output's events. */
  int32_t prompt_logprobs;

  /* scheduling of the request */
  int32_t priority; /* requests of higher priority run first */
  /* User of the request. The queue shares time fairly between tenants and between a tenant's
   * users; users with equal upper 32 bits belong to one tenant. */
  uint64_t user;
  uint64_t salt;   /* only requests with the same salt share cached prefixes */
  int32_t adapter; /* index of the library's adapter; 0 for none */

  /* speculative decoding, which changes the speed, never the tokens */
  int32_t max_drafts; /* upper bound on draft tokens in a step; 0: none, -1: the engine's choice */
  const int32_t* prediction; /* [n_prediction] tokens that the output is likely to repeat */
  size_t n_prediction;

  /* other kinds of requests than decoding */
  int32_t embed; /* 1: the request has no output but one event with the prompt's embedding */
  const int32_t* source; /* [n_source] input tokens of the encoder, for encoder-decoder models */
  size_t n_source;

  /* [n_images] parts of the prompt that are images: ascending, without overlap; for models with a
   * tower ("vision" of wherry_model_load). wherry_engine_add copies all that they point to. */
  const wherry_image* images;
  size_t n_images;
} wherry_params;

#define WHERRY_MAX_TOP_LOGPROBS 20

typedef struct {
  uint64_t id;
  int32_t token;  /* the token's id; -1 if the event has none */
  int32_t finish; /* a wherry_finish: whether and why the request ended */
  int32_t prompt; /* 1 if this is a token of the prompt, with its logprob */
  float logprob;  /* natural logarithm of the token's probability at temperature 1 */
  int32_t n_top;  /* number of elements that are set in the two arrays below */
  int32_t top_ids[WHERRY_MAX_TOP_LOGPROBS];
  float top_logprobs[WHERRY_MAX_TOP_LOGPROBS];
  /* totals of the request so far */
  int32_t cached_tokens;   /* prompt tokens found in the prefix cache */
  int32_t drafted_tokens;  /* number of verified draft tokens */
  int32_t accepted_tokens; /* number of accepted draft tokens */
  float queue_seconds;     /* seconds from wherry_engine_add to the first step */
  float prefill_seconds;   /* seconds from the first step to the first token */
  float decode_seconds;    /* seconds from the first token to this event */
  /*
   * The prompt's embedding in a WHERRY_DONE event: float32 [n_embedding], valid until the engine
   * returns events again.
   */
  const float* embedding;
  int64_t n_embedding;
} wherry_event;

typedef struct {
  size_t size;                /* sizeof(wherry_stats), set by the caller */
  uint64_t steps;             /* number of model runs since creation or reset */
  uint64_t prompt_tokens;     /* prompt tokens of all admitted requests */
  uint64_t prefill_tokens;    /* prompt tokens that were computed */
  uint64_t cached_tokens;     /* prompt tokens found in the prefix cache, in memory or on disk */
  uint64_t disk_tokens;       /* prompt tokens read from disk */
  uint64_t decode_tokens;     /* sampled tokens */
  uint64_t recomputed_tokens; /* tokens computed again after a preemption */
  uint64_t drafted_tokens, accepted_tokens;
  uint64_t finished;    /* number of requests that ended, for any reason */
  uint64_t preemptions; /* number of times that a request was preempted because pages ran out */
  int32_t waiting, prefilling, running;
  int32_t pages_total, pages_free; /* pages of the KV cache, page_size tokens each */
  int32_t pages_cached;            /* free pages that contain prefixes that no request uses */
  int32_t page_size;
  double model_seconds;  /* seconds of wall time inside the compiled model */
  double sample_seconds; /* seconds from logits to tokens */
  double host_seconds;   /* seconds of planning and of updating requests */
  double step_seconds;   /* seconds since the step in flight began; 0 if there is none */
  /* Consecutive failed steps up to the last step; each failed its requests. On a lost device
   * every step fails. */
  uint64_t failed_steps;
  uint64_t candidate_rows; /* rows whose token was sampled from the device's candidates */
  uint64_t whole_rows;     /* rows whose token was sampled from all logits, as always on a CPU */
  uint64_t readback_bytes; /* bytes of results copied from a device to the host */
  /* The part of sample_seconds and host_seconds during which the device computed a step. */
  double overlapped_seconds;
  /* Steps launched ahead: before the previous step was read, with tokens that the device drew. */
  uint64_t chained_steps;
  uint64_t wasted_rows; /* rows of these steps whose token was rejected or request had ended */
  uint64_t graph_steps; /* steps replayed as CUDA graphs */
  /* Why CUDA graphs were turned off, which costs speed only; null if they were not. Owned by the
   * engine. */
  const char* graphs_given_up;
  /* Why launch-ahead was turned off, which costs speed only; null if it was not. Owned by the
   * engine. */
  const char* chains_given_up;
  uint64_t disk_dropped; /* prefix cache blocks that were not written to "cache_dir" */
  /* Why writes to "cache_dir" fail at the moment, which costs speed only; null if they work.
   * Owned by the engine. */
  const char* disk_problem;
  /* Slots of recurrent states; 0 for models without one. */
  int32_t state_slots;
  int32_t state_slots_free; /* slots that neither a request nor a snapshot has */
  int32_t state_snapshots;  /* slots with the state after a cached prefix */
  uint64_t images_encoded;  /* tiles of images that the tower computed */
} wherry_stats;

WHERRY_API int wherry_abi_version(void); /* returns the library's WHERRY_ABI_VERSION */
WHERRY_API const char* wherry_last_error(void);

/*
 * Loads a compiled model.
 *
 * lib: path of a compiled library, or "system:<prefix>" for one linked into the program.
 * weights: folder with tensor-cache.json and its shards.
 * device: "cpu" or "<kind>:<index>".
 * options_json: null or a JSON object; all keys are optional: {"threads": int,
 *  "pack_dir": folder for the packed weights,
 *  "check_weights": 1 (default) compares weights with the checksums in that folder, 0 does not,
 *  "cuda_graphs": 1 (default) captures decode steps of equal sizes as CUDA graphs and replays them,
 *   0 does not,
 *  "vision": path of the library of the model's tower, whose weights are in the same folder; it is
 *   opened at the first image (none: the model takes no images)}
 * out: gets the model; free it with wherry_model_free.
 */
WHERRY_API int wherry_model_load(const char* lib, const char* weights, const char* device,
                                 const char* options_json, wherry_model** out);
/*
 * Frees the caller's reference to a model. Engines keep their own references, so the model may be
 * freed before them.
 */
WHERRY_API int wherry_model_free(wherry_model* model);
/* Returns the library's metadata as JSON text; the model owns it. */
WHERRY_API const char* wherry_model_metadata(const wherry_model* model);

/*
 * Creates a loader for a model whose weights the caller provides, as in browsers, which have no
 * files to open. Free it with wherry_loader_free.
 *
 * lib, device, options_json: as in wherry_model_load. index: the text of tensor-cache.json.
 */
WHERRY_API int wherry_loader_create(const char* lib, const char* index, const char* device,
                                    const char* options_json, wherry_loader** out);
WHERRY_API int wherry_loader_free(wherry_loader* loader);
/*
 * Returns the stored tensors that the library needs, in the order of their bytes, as JSON text that
 * the loader owns:
 * [{"shard": "params_shard_0.bin", "offset": bytes, "nbytes": as stored, "bf16": whether these are
 *  the upper halves of float32 values, which the caller widens}]
 */
WHERRY_API const char* wherry_loader_tensors(const wherry_loader* loader);
/*
 * Sets *data to the memory that the caller fills with tensor `i` of wherry_loader_tensors: an
 * address, or the device's handle.
 */
WHERRY_API int wherry_loader_place(wherry_loader* loader, size_t i, void** data);
/*
 * Packs the weights that are complete. Call it when tensor `i` is filled: later device commands
 * must see its bytes.
 */
WHERRY_API int wherry_loader_filled(wherry_loader* loader, size_t i);
/* Creates the model when all tensors are filled. Afterwards the loader can only be freed. */
WHERRY_API int wherry_loader_finish(wherry_loader* loader, wherry_model** out);

/*
 * Creates an engine, which wherry_engine_destroy destroys.
 *
 * draft: a smaller model with the same vocabulary that proposes draft tokens, or null.
 * config_json: null or a JSON object; all keys are optional, unknown keys are errors:
 * {"max_batch": upper bound on sequences decoded together (8),
 *  "context": upper bound on tokens of one request (the library's),
 *  "kv_tokens": capacity of the KV cache (max_batch * context; memory is committed on first use),
 *  "kv_memory": upper bound of its bytes, which lowers "kv_tokens" (none); layers with a sliding
 *   window, and the recurrent state of running sequences, do not count: their part does not grow
 *   with the context,
 *  "prefill_chunk": upper bound on rows (tokens) of one step, at least max_batch (256),
 *  "prefix_cache": whether requests share the KV cache of common prefixes (true),
 *  "cache_dir": folder for the prefix cache on disk, which outlives the process (none); models
 *   with a sliding window or a recurrent state do without, which wherry_stats.disk_problem says,
 *  "cache_bytes": upper bound on the size of that folder (1 GiB),
 *  "max_drafts": draft tokens for a request that sets no number (0; with a draft model 4, with
 *   a block of multi-token prediction in the library 3),
 *  "max_slowdown": factor by which prefill chunks may lengthen a step of running requests, and
 *   images their time (2),
 *  "max_step_seconds": upper bound on a step with prefill chunks, as far as known (0: no limit),
 *  "image_rows": rows of image features that stay in memory (context, at most 8192); at
 *   least those of a tile}
 */
WHERRY_API int wherry_engine_create(wherry_model* model, wherry_model* draft,
                                    const char* config_json, wherry_engine** out);
/*
 * Stops the engine's thread, wakes callers of wherry_engine_wait and frees the engine. No later
 * call may use it.
 */
WHERRY_API int wherry_engine_destroy(wherry_engine* engine);
/*
 * Aborts every request (their WHERRY_ABORTED events are queued), and clears cache and statistics.
 */
WHERRY_API int wherry_engine_reset(wherry_engine* engine);
/* Evicts cached prefixes that no request uses (except those on disk), to free memory. */
WHERRY_API int wherry_engine_clear_cache(wherry_engine* engine);

WHERRY_API void wherry_params_init(wherry_params* params);
/*
 * Queues a request of n tokens: 1 <= n < context, or n <= context to embed them. Prompt and output
 * together end with the context.
 * `id` must not be in use; it is free again once its last event is queued. A request that exceeds
 * the whole KV cache is rejected; one that does not fit now waits.
 */
WHERRY_API int wherry_engine_add(wherry_engine* engine, uint64_t id, const int32_t* tokens,
                                 size_t n, const wherry_params* params);
/*
 * Ends a request with WHERRY_ABORTED, now or after the step in flight. Returns WHERRY_NOT_FOUND if
 * the request has ended already.
 */
WHERRY_API int wherry_engine_abort(wherry_engine* engine, uint64_t id);

/*
 * Run one step in the caller's thread. launch plans one mixed batch (decode rows first, then
 * prefill chunks up to the token budget), and starts it with the copy of its results; collect waits
 * for the results, samples, and returns events. *n is the number of events written; events beyond
 * cap stay queued for the next call. launch with nothing to do returns WHERRY_OK, and the following
 * collect returns queued events.
 */
WHERRY_API int wherry_engine_launch(wherry_engine* engine);
WHERRY_API int wherry_engine_collect(wherry_engine* engine, wherry_event* events, size_t cap,
                                     size_t* n);
WHERRY_API int wherry_engine_step(wherry_engine* engine, wherry_event* events, size_t cap,
                                  size_t* n);
/*
 * Checks whether collect can run; call it between launch and collect, after the device has finished
 * its commands. *ready = 0: collect needs more results, which this call requested; 1: collect has
 * all results. Only browsers need it, where no call can wait for a device; elsewhere *ready is
 * always 1.
 */
WHERRY_API int wherry_engine_ready(wherry_engine* engine, int* ready);

/* Starts the engine's own thread, which runs steps while there is work and sleeps otherwise. */
WHERRY_API int wherry_engine_start(wherry_engine* engine);
/* Stops the engine's thread after the step in flight; requests stay. */
WHERRY_API int wherry_engine_stop(wherry_engine* engine);
/*
 * Waits until there is an event, or until timeout_ms milliseconds passed (then *n is 0); -1 means
 * no timeout.
 */
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
 * wherry_vocabulary_create creates the vocabulary of a tokenizer.
 * library: path of the llguidance library.
 * bytes: the n tokens' bytes, concatenated; lengths: [n]. A token of length 0 matches no text. A
 * longer token that begins with the byte 0xff is special: it matches no text either, but a grammar
 * of kind "lark" can name it, without that byte.
 */
WHERRY_API int wherry_vocabulary_create(const char* library, const uint8_t* bytes,
                                        const uint32_t* lengths, size_t n, wherry_vocabulary** out);
/*
 * Frees the caller's reference to a vocabulary. Grammars keep references to their vocabulary, and
 * masks to their grammar.
 */
WHERRY_API int wherry_vocabulary_free(wherry_vocabulary* vocabulary);
/*
 * Compiles a grammar; thread-safe.
 *
 * kind: "json_schema", "regex" (the whole output matches), or "lark" (a grammar whose first rule is
 * `start`).
 * Returns WHERRY_INVALID_ARGUMENT for a text that is wrong or cannot be enforced; the message names
 * the place. The call takes milliseconds, but for some texts seconds and a large stack: a server
 * should call it outside of the thread that handles requests, and limit untrusted text first.
 */
WHERRY_API int wherry_grammar_compile(const wherry_vocabulary* vocabulary, const char* kind,
                                      const char* text, wherry_grammar** out);
WHERRY_API int wherry_grammar_free(wherry_grammar* grammar);
/*
 * Creates the mask of one request, for wherry_params. Thread-safe. stop_ids: tokens that may end
 * the output where the grammar is complete; where nothing may follow, the request ends by itself.
 * The caller must release a mask that it does not pass to wherry_engine_add.
 */
WHERRY_API int wherry_grammar_mask(const wherry_grammar* grammar, const int32_t* stop_ids,
                                   size_t n_stop_ids, wherry_mask* out);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_H_ */
