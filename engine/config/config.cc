#include "config/config.h"

#include <algorithm>

#include "support/json_reader.h"

namespace wherry {

namespace {

constexpr int64_t kImageRows = 8192;  // most rows of image features, unless the host asks for more

JsonReader reader_of(const char* json, const char* what, Problems& problems) {
  std::string text = json == nullptr || *json == '\0' ? "{}" : json;
  return {parse_json_object(text, what, WHERRY_INVALID_ARGUMENT), what, problems};
}

int64_t bounded(JsonReader& reader, const char* key, int64_t otherwise, int64_t low, int64_t high,
                Problems& problems) {
  int64_t value = reader.integer_or(key, otherwise);
  if (reader.has(key) && (value < low || value > high)) {
    problems.add(reader.where(), ": \"", key, "\" is ", value, "; accepted are ", low, "..", high);
  }
  return value;
}

// Returns the tokens for which `bytes` of memory have pages, at least one page of them, and the
// snapshots of a recurrent state that come with the pages. Groups of layers with a window and the
// state of running sequences, which no further token takes, are left out.
int64_t tokens_within(int64_t bytes, const Metadata& metadata) {
  int64_t page_bytes = 0;
  for (const StateSpec& spec : metadata.state) {
    if (spec.recurrent || metadata.groups[spec.group].window > 0) continue;
    int64_t layer = spec.dtype.bits * spec.dtype.lanes / 8;
    for (int64_t extent : spec.shape) layer *= extent;
    page_bytes += layer * spec.layers;
  }
  if (metadata.recurrent()) page_bytes += page_bytes / kSnapshotShare;
  const int64_t pages = page_bytes > 0 ? bytes / page_bytes : INT32_MAX;
  return std::clamp<int64_t>(pages, 1, INT32_MAX / 2 / metadata.page_size) * metadata.page_size;
}

}  // namespace

ModelOptions parse_model_options(const char* json) {
  Problems problems;
  JsonReader reader = reader_of(json, "the model's options", problems);
  reader.only({"threads", "pack_dir", "check_weights", "cuda_graphs", "vision"});
  ModelOptions options;
  options.threads = static_cast<int>(bounded(reader, "threads", 0, 0, 512, problems));
  options.pack_dir = reader.string_or("pack_dir", "");
  options.check_weights = bounded(reader, "check_weights", 1, 0, 1, problems) != 0;
  options.cuda_graphs = bounded(reader, "cuda_graphs", 1, 0, 1, problems) != 0;
  options.vision = reader.string_or("vision", "");
  problems.raise(WHERRY_INVALID_ARGUMENT, "the model's options are wrong");
  return options;
}

EngineConfig parse_engine_config(const char* json, const Metadata& metadata) {
  return parse_engine_config(json, metadata, 0);
}

EngineConfig parse_engine_config(const char* json, const Metadata& metadata, int drafts) {
  Problems problems;
  JsonReader reader = reader_of(json, "the engine's configuration", problems);
  reader.only({"max_batch", "context", "kv_tokens", "kv_memory", "prefill_chunk", "prefix_cache",
               "cache_dir", "cache_bytes", "max_drafts", "max_slowdown", "max_step_seconds",
               "image_rows"});
  const int64_t page = metadata.page_size;
  const int64_t most_tokens = INT32_MAX / 2;  // page and row numbers are int32

  EngineConfig config;
  int64_t max_batch = bounded(reader, "max_batch", std::min<int64_t>(8, metadata.max_batch), 1,
                              metadata.max_batch, problems);
  int64_t given_kv = bounded(reader, "kv_tokens", metadata.context, page, most_tokens, problems);
  int64_t context = bounded(reader, "context", std::min(metadata.context, given_kv), 2,
                            metadata.context, problems);
  int64_t all = std::min(max_batch * context, most_tokens);
  int64_t kv_tokens = reader.has("kv_tokens") ? given_kv : all;
  if (reader.has("kv_memory")) {
    int64_t memory = bounded(reader, "kv_memory", 0, 1, INT64_MAX, problems);
    kv_tokens = std::min(kv_tokens, tokens_within(memory, metadata));
    // A request has at most the tokens of the whole cache.
    if (!reader.has("context")) context = std::max<int64_t>(2, std::min(context, kv_tokens));
  }
  int64_t rows = std::min(std::max<int64_t>(256, max_batch), metadata.prefill_chunk);
  int64_t chunk = bounded(reader, "prefill_chunk", rows, 1, metadata.prefill_chunk, problems);
  if (chunk < max_batch) {
    problems.add("\"prefill_chunk\" is ", chunk, ", but it is the number of rows of one step and ",
                 "must hold max_batch (", max_batch, ") of them");
  }
  config.prefix_cache = reader.boolean_or("prefix_cache", true);
  config.cache_dir = reader.string_or("cache_dir", "");
  config.cache_bytes = bounded(reader, "cache_bytes", config.cache_bytes, 0, INT64_MAX, problems);
  config.max_drafts = static_cast<int>(bounded(reader, "max_drafts", drafts, 0, 64, problems));
  config.max_slowdown = reader.number_or("max_slowdown", config.max_slowdown);
  if (!(config.max_slowdown > 1)) {
    problems.add("\"max_slowdown\" is ", config.max_slowdown, "; accepted is more than 1");
  }
  config.max_step_seconds = reader.number_or("max_step_seconds", config.max_step_seconds);
  if (!(config.max_step_seconds >= 0)) {
    problems.add("\"max_step_seconds\" is ", config.max_step_seconds, "; accepted is 0 or more");
  }
  if (metadata.image_features > 0) {
    config.image_rows =
        bounded(reader, "image_rows", std::min(context, kImageRows), 1, most_tokens, problems);
  } else if (reader.has("image_rows")) {
    problems.add("\"image_rows\" is for models that take images; this one takes none");
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, "the engine's configuration is wrong");

  config.max_batch = static_cast<int>(max_batch);
  config.context = static_cast<int>(context);
  config.kv_tokens = (kv_tokens + page - 1) / page * page;
  config.prefill_chunk = static_cast<int>(chunk);
  return config;
}

}  // namespace wherry
