#include "abi/c_api.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "abi/guard.h"
#include "config/config.h"
#include "sampling/params.h"
#include "support/error.h"
#include "support/tvm_calls.h"
#include "vm/vm_model.h"

namespace {

using wherry::Error;
using wherry::guard;
using wherry::required;

// Guards calls that return events. *n is set even if the call fails; if an event is WHERRY_ERROR,
// its reason becomes this thread's last error.
template <typename Call>
int guard_events(wherry_engine* engine, size_t* n, const Call& call) noexcept {
  return guard([&] {
    required(n, "n") = 0;
    std::string error;
    *n = call(required(engine, "engine").engine, &error);
    if (!error.empty()) wherry::last_error() = std::move(error);
  });
}

namespace json = tvm::ffi::json;

std::string describe_tensors(wherry::VmLoader& loader) {
  json::Array list;
  for (const wherry::StoredTensor& stored : loader.params().required_tensors()) {
    json::Object tensor;
    tensor.Set("shard", tvm::ffi::String(loader.index().shards()[stored.shard].path));
    tensor.Set("offset", stored.offset);
    tensor.Set("nbytes", stored.nbytes);
    tensor.Set("bf16", stored.as_bf16);
    list.push_back(tensor);
  }
  return wherry::json_text(list);
}

// Returns the loader's parameters; throws if the loader has no tensor `i`.
wherry::StreamedParams& params_with(wherry_loader* loader, size_t i) {
  wherry::StreamedParams& params = required(loader, "loader").loader.params();
  if (i < params.required_tensors().size()) return params;
  throw Error(WHERRY_INVALID_ARGUMENT, wherry::concat("tensor ", i, "; the library takes ",
                                                      params.required_tensors().size()));
}

}  // namespace

extern "C" {

int wherry_abi_version(void) { return WHERRY_ABI_VERSION; }
const char* wherry_last_error(void) { return wherry::last_error().c_str(); }

int wherry_model_load(const char* lib, const char* weights, const char* device,
                      const char* options_json, wherry_model** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(lib, "lib");
    required(weights, "weights");
    wherry::ModelOptions options = wherry::parse_model_options(options_json);
    auto model = wherry::load_vm_model(lib, weights, device == nullptr ? "cpu" : device, options);
    *out = new wherry_model{std::move(model)};
  });
}

int wherry_model_free(wherry_model* model) {
  return guard([&] { delete model; });
}

const char* wherry_model_metadata(const wherry_model* model) {
  return model == nullptr ? nullptr : model->model->metadata().json.c_str();
}

int wherry_loader_create(const char* lib, const char* index, const char* device,
                         const char* options_json, wherry_loader** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(lib, "lib");
    required(index, "index");
    wherry::ModelOptions options = wherry::parse_model_options(options_json);
    std::unique_ptr<wherry_loader> created(
        new wherry_loader{{lib, index, device == nullptr ? "cpu" : device, options}, {}});
    created->tensors = describe_tensors(created->loader);
    *out = created.release();
  });
}

int wherry_loader_free(wherry_loader* loader) {
  return guard([&] { delete loader; });
}

const char* wherry_loader_tensors(const wherry_loader* loader) {
  return loader == nullptr ? nullptr : loader->tensors.c_str();
}

int wherry_loader_place(wherry_loader* loader, size_t i, void** data) {
  return guard([&] {
    required(data, "data") = nullptr;
    *data = params_with(loader, i).place(i).data_ptr();
  });
}

int wherry_loader_filled(wherry_loader* loader, size_t i) {
  return guard([&] { params_with(loader, i).filled(i); });
}

int wherry_loader_finish(wherry_loader* loader, wherry_model** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    *out = new wherry_model{required(loader, "loader").loader.finish()};
  });
}

int wherry_engine_create(wherry_model* model, wherry_model* draft, const char* config_json,
                         wherry_engine** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(model, "model");
    // Defaults of max_drafts with a draft model, and with a block of multi-token prediction, which
    // was trained for one token and is repeated.
    constexpr int kOfModel = 4, kOfBlock = 3;
    const wherry::Metadata& metadata = model->model->metadata();
    const int drafts = draft != nullptr                      ? kOfModel
                       : metadata.has(wherry::Entry::kDraft) ? kOfBlock
                                                             : 0;
    auto config = wherry::parse_engine_config(config_json, metadata, drafts);
    *out = new wherry_engine{{model->model, draft == nullptr ? nullptr : draft->model, config}};
  });
}

int wherry_engine_destroy(wherry_engine* engine) {
  return guard([&] { delete engine; });
}

int wherry_engine_reset(wherry_engine* engine) {
  return guard([&] { required(engine, "engine").engine.reset(); });
}

int wherry_engine_clear_cache(wherry_engine* engine) {
  return guard([&] { required(engine, "engine").engine.clear_cache(); });
}

void wherry_params_init(wherry_params* params) {
  if (params != nullptr) *params = wherry::default_params();
}

int wherry_engine_add(wherry_engine* engine, uint64_t id, const int32_t* tokens, size_t n,
                      const wherry_params* params) {
  return guard([&] {
    wherry_params current = wherry::current_params(required(params, "params"));
    required(engine, "engine").engine.add(id, tokens, n, current);
  });
}

int wherry_engine_abort(wherry_engine* engine, uint64_t id) {
  return guard([&] { required(engine, "engine").engine.abort(id); });
}

int wherry_engine_launch(wherry_engine* engine) {
  return guard([&] { required(engine, "engine").engine.launch(); });
}

int wherry_engine_collect(wherry_engine* engine, wherry_event* events, size_t cap, size_t* n) {
  return guard_events(engine, n, [&](wherry::Engine& e, std::string* error) {
    return e.collect(events, cap, error);
  });
}

int wherry_engine_step(wherry_engine* engine, wherry_event* events, size_t cap, size_t* n) {
  return guard_events(
      engine, n, [&](wherry::Engine& e, std::string* error) { return e.step(events, cap, error); });
}

int wherry_engine_ready(wherry_engine* engine, int* ready) {
  return guard([&] {
    required(ready, "ready") = 0;
    *ready = required(engine, "engine").engine.ready() ? 1 : 0;
  });
}

int wherry_engine_start(wherry_engine* engine) {
  return guard([&] { required(engine, "engine").engine.start(); });
}

int wherry_engine_stop(wherry_engine* engine) {
  return guard([&] { required(engine, "engine").engine.stop(); });
}

int wherry_engine_wait(wherry_engine* engine, wherry_event* events, size_t cap, int timeout_ms,
                       size_t* n) {
  return guard_events(engine, n, [&](wherry::Engine& e, std::string* error) {
    return e.wait(events, cap, timeout_ms, error);
  });
}

int wherry_engine_wake(wherry_engine* engine) {
  return guard([&] { required(engine, "engine").engine.wake(); });
}

int wherry_engine_stats(wherry_engine* engine, wherry_stats* out) {
  return guard([&] {
    size_t size = std::min(required(out, "out").size, sizeof(wherry_stats));
    wherry_stats stats = required(engine, "engine").engine.stats();
    stats.size = size;
    std::memcpy(out, &stats, size);
  });
}

}  // extern "C"
