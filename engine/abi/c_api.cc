#include "abi/c_api.h"

#include <tvm/ffi/error.h>

#include <new>
#include <string>

#include "abi/config.h"
#include "model/vm_model.h"
#include "support/error.h"

namespace {

using wherry::Error;

thread_local std::string last_error;

int fail(core_status status, std::string text) {
  last_error = std::move(text);
  return status;
}

// Runs `call`; no exception leaves.
template <typename Call>
int guard(const Call& call) noexcept {
  try {
    call();
    return CORE_OK;
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const tvm::ffi::Error& error) {
    const bool memory = error.kind() == "MemoryError";  // of a device's run time
    return fail(memory ? CORE_OUT_OF_MEMORY : CORE_INTERNAL,
                wherry::concat(std::string(error.kind()), ": ", std::string(error.message())));
  } catch (const std::bad_alloc&) {
    return fail(CORE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(CORE_INTERNAL, error.what());
  } catch (...) {
    return fail(CORE_INTERNAL, "an exception of an unknown kind");
  }
}

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw Error(CORE_INVALID_ARGUMENT, wherry::concat(name, " is null"));
  return *pointer;
}

// Calls that hand out events: *n is set whatever happens, and the reason of a CORE_ERROR among
// them becomes this thread's last error.
template <typename Call>
int guard_events(core_engine* engine, size_t* n, const Call& call) noexcept {
  return guard([&] {
    required(n, "n") = 0;
    std::string error;
    *n = call(required(engine, "engine").engine, &error);
    if (!error.empty()) last_error = std::move(error);
  });
}

}  // namespace

extern "C" {

int core_version(void) { return WHERRY_ABI_VERSION; }
const char* core_last_error(void) { return last_error.c_str(); }

int core_model_load(const char* lib, const char* weights, const char* device,
                    const char* options_json, core_model** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(lib, "lib");
    required(weights, "weights");
    wherry::ModelOptions options = wherry::parse_model_options(options_json);
    auto model = wherry::load_vm_model(lib, weights, device == nullptr ? "cpu" : device, options);
    *out = new core_model{std::move(model)};
  });
}

int core_model_free(core_model* model) {
  return guard([&] { delete model; });
}

const char* core_model_metadata(const core_model* model) {
  return model == nullptr ? nullptr : model->model->metadata().json.c_str();
}

int core_create(core_model* model, core_model* draft, const char* config_json, core_engine** out) {
  return guard([&] {
    required(out, "out") = nullptr;
    required(model, "model");
    if (draft != nullptr) throw Error(CORE_INVALID_ARGUMENT, "draft must be null in this version");
    auto config = wherry::parse_engine_config(config_json, model->model->metadata());
    *out = new core_engine{{model->model, config}};
  });
}

int core_destroy(core_engine* engine) {
  return guard([&] { delete engine; });
}

int core_reset(core_engine* engine) {
  return guard([&] { required(engine, "engine").engine.reset(); });
}

void core_params_init(core_params* params) {
  if (params == nullptr) return;
  *params = core_params{};
  params->temperature = 1;
  params->top_p = 1;
  params->repetition_penalty = 1;
}

int core_add(core_engine* engine, uint64_t id, const int32_t* tokens, size_t n,
             const core_params* params) {
  return guard(
      [&] { required(engine, "engine").engine.add(id, tokens, n, required(params, "params")); });
}

int core_abort(core_engine* engine, uint64_t id) {
  return guard([&] { required(engine, "engine").engine.abort(id); });
}

int core_step_launch(core_engine* engine) {
  return guard([&] { required(engine, "engine").engine.launch(); });
}

int core_step_collect(core_engine* engine, core_event* events, size_t cap, size_t* n) {
  return guard_events(engine, n, [&](wherry::Engine& e, std::string* error) {
    return e.collect(events, cap, error);
  });
}

int core_step(core_engine* engine, core_event* events, size_t cap, size_t* n) {
  return guard_events(
      engine, n, [&](wherry::Engine& e, std::string* error) { return e.step(events, cap, error); });
}

int core_start(core_engine* engine) {
  return guard([&] { required(engine, "engine").engine.start(); });
}

int core_stop(core_engine* engine) {
  return guard([&] { required(engine, "engine").engine.stop(); });
}

int core_wait_events(core_engine* engine, core_event* events, size_t cap, int timeout_ms,
                     size_t* n) {
  return guard_events(engine, n, [&](wherry::Engine& e, std::string* error) {
    return e.wait(events, cap, timeout_ms, error);
  });
}

int core_wake(core_engine* engine) {
  return guard([&] { required(engine, "engine").engine.wake(); });
}

int core_stats(core_engine* engine, core_stats_t* out) {
  return guard([&] { required(out, "out") = required(engine, "engine").engine.stats(); });
}

}  // extern "C"
