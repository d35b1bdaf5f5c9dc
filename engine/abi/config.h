// The JSON records of wherry_model_load and wherry_engine_create.
#ifndef WHERRY_ENGINE_ABI_CONFIG_H_
#define WHERRY_ENGINE_ABI_CONFIG_H_

#include <cstdint>
#include <string>

#include "model/metadata.h"

namespace wherry {

struct ModelOptions {
  int threads = 0;            // of the compiled model's kernels; 0: see default_threads()
  std::string pack_dir;       // folder for the packed weights; empty: keep them in memory
  bool check_weights = true;  // against the checksums of the first load with this pack_dir
  bool cuda_graphs = true;    // decode steps of the same sizes are one command of a CUDA device
};

struct EngineConfig {
  int max_batch = 0;      // sequences in one step
  int context = 0;        // tokens of one request, prompt and output
  int64_t kv_tokens = 0;  // tokens of the cache in all, a multiple of the page size
  int prefill_chunk = 0;  // rows (tokens) of one step, >= max_batch
  bool prefix_cache = true;
  std::string cache_dir;          // where prefixes outlive the process; empty: nowhere
  int64_t cache_bytes = 1 << 30;  // that cache_dir may take
  int max_drafts = 0;             // draft tokens of a request that does not say
  double max_slowdown = 2;        // of a running request's step, by prompts' chunks
  double max_step_seconds = 0;    // of a step, by prompts' chunks; 0: no bound
};

// Null and "" are "{}". Throws WHERRY_INVALID_ARGUMENT with all that is wrong.
ModelOptions parse_model_options(const char* json);

// Defaults: max_batch 8, context the library's (or kv_tokens if less), kv_tokens
// max_batch * context (its memory is taken page by page as requests use it), prefill_chunk
// 256 or max_batch if more; never more than the library's memory is planned for.
EngineConfig parse_engine_config(const char* json, const Metadata& metadata);
// `drafts`: max_drafts where it is not given.
EngineConfig parse_engine_config(const char* json, const Metadata& metadata, int drafts);

}  // namespace wherry

#endif  // WHERRY_ENGINE_ABI_CONFIG_H_
