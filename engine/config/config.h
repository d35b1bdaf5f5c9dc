// Parses the JSON options of wherry_model_load and wherry_engine_create.
#ifndef WHERRY_ENGINE_CONFIG_CONFIG_H_
#define WHERRY_ENGINE_CONFIG_CONFIG_H_

#include <cstdint>
#include <string>

#include "model/metadata.h"

namespace wherry {

struct ModelOptions {
  int threads = 0;       // threads that run the model's kernels; 0 means default_threads()
  std::string pack_dir;  // folder for packed weights; if empty, packed weights stay in memory
  // Whether to compare weights with checksums of the first load with this pack_dir.
  bool check_weights = true;
  bool cuda_graphs = true;  // whether to capture decode steps as CUDA graphs and replay them
  std::string vision;       // path of the library of the model's tower; empty if there is none
};

struct EngineConfig {
  int max_batch = 0;      // upper bound on the sequences in one step
  int context = 0;        // upper bound on the tokens of one request, prompt and output
  int64_t kv_tokens = 0;  // capacity of the KV cache in tokens, a multiple of the page size
  int prefill_chunk = 0;  // upper bound on the rows (tokens) of one step, >= max_batch
  bool prefix_cache = true;
  std::string cache_dir;          // folder for the prefix cache on disk; empty if there is none
  int64_t cache_bytes = 1 << 30;  // upper bound on the size of cache_dir in bytes
  int max_drafts = 0;             // draft tokens for a request that sets no number
  double max_slowdown = 2;  // factor by which prefill chunks may slow a running request's step
  // Upper bound on the seconds of a step with prefill chunks; 0 for none.
  double max_step_seconds = 0;
  int64_t image_rows = 0;  // rows of image features in memory; 0 if the model takes no images
};

// Parses the options of wherry_model_load; null and "" mean "{}". Throws WHERRY_INVALID_ARGUMENT
// with every problem that it finds.
ModelOptions parse_model_options(const char* json);

// Parses the options of wherry_engine_create. Defaults: max_batch 8; context that of the library,
// or kv_tokens if that is less; image_rows the context, at most 8,192; kv_tokens max_batch *
// context (the system commits this memory when pages are first written); prefill_chunk the larger
// of 256 and max_batch. No default exceeds the library's memory plan.
EngineConfig parse_engine_config(const char* json, const Metadata& metadata);
// Parses the options with `drafts` as the default of max_drafts.
EngineConfig parse_engine_config(const char* json, const Metadata& metadata, int drafts);

}  // namespace wherry

#endif  // WHERRY_ENGINE_CONFIG_CONFIG_H_
