#include "app/load/load.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/load/codes.h"
#include "app/load/libraries.h"
#include "app/load/status.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

namespace fs = std::filesystem;

using Items = std::vector<std::pair<Value, Value>>;

constexpr const char* kEngineOptions[] = {"context",   "kv_tokens",     "kv_memory",
                                          "max_batch", "prefill_chunk", "prefix_cache",
                                          "cache_dir", "cache_bytes",   "max_drafts"};

// Returns the engine's configuration from the options, with the model's compile-time values as
// defaults.
std::string engine_config(const Fields& options, const Manifest& manifest) {
  Items items;
  const std::pair<const char*, int64_t> compiled[] = {{"context", manifest.context},
                                                      {"max_batch", manifest.max_batch},
                                                      {"prefill_chunk", manifest.prefill_chunk}};
  for (const auto& [name, value] : compiled) {
    if (value > 0) items.emplace_back(name, value);
  }
  for (const char* name : kEngineOptions) {
    if (const Value* value = options.find(name)) items.emplace_back(name, *value);
  }
  return json::to_compact_json(json::make_dict(std::move(items)));
}

std::string model_options(const Fields& options, const Code& code) {
  Items items;
  if (!code.tower.empty()) items.emplace_back("vision", code.tower);
  for (const char* name : {"threads", "pack_dir", "check_weights"}) {
    if (const Value* value = options.find(name)) items.emplace_back(name, *value);
  }
  return json::to_compact_json(json::make_dict(std::move(items)));
}

// Returns the path of the tower's library next to a text library, as "vision.so" next to
// "model.so"; "" if there is none.
std::string tower_of(const std::string& library) {
  const fs::path path(library);
  const std::string name = path.filename().string();
  constexpr std::string_view kText = "model";
  if (name.compare(0, kText.size(), kText) != 0) return "";
  const fs::path tower = path.parent_path() / ("vision" + name.substr(kText.size()));
  return fs::is_regular_file(tower) ? tower.string() : "";
}

// Returns the path of the library from the options, else in the folder; a folder without a library
// belongs to a package whose models are linked into the program.
std::string library_of(const Fields& options, const Manifest& manifest, const std::string& folder) {
  const std::string prefix = text_option(options, "system_library_prefix");
  const std::string path = text_option(options, "library");
  if (!prefix.empty() && !path.empty()) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                "options \"library\" and \"system_library_prefix\" are two places of one library");
  }
  if (!prefix.empty()) return "system:" + prefix;
  if (!path.empty()) return path;
  if (!manifest.linked.empty()) return "system:" + manifest.linked;
  return folder + "/" + manifest.library;
}

class Loader {
 public:
  Loader(const std::string& folder, const Fields& options, const Manifest& manifest)
      : folder_(folder), options_(options), manifest_(manifest) {
    const std::string packed = text_option(options, "pack_dir");
    if (!packed.empty()) programs_ = packed + "/programs";
  }

  // Loads the first library that runs here. Throws Error with each library's obstacle if none does.
  Loaded load() const {
    const std::string device = text_option(options_, "device");
    const std::vector<Code> codes = codes_of(device);
    const bool automatic = device.empty() || device == "auto";
    Loaded loaded;
    for (const Code& code : codes) {
      const bool last = &code == &codes.back();
      const std::string why = linked_ ? obstacle(code, automatic, programs_) : "";
      try {
        if (!why.empty()) throw Error(WHERRY_INCOMPATIBLE, why);
        load(code, loaded);
        if (!last && linked_ && code.device != "cpu") try_a_step(loaded.engine.get());
        return loaded;
      } catch (const Error& error) {
        if (codes.size() == 1) throw;
        loaded.engine.reset();
        loaded.model.reset();
        loaded.passed.push_back({name_of(code), error.what()});
        if (last) refuse(error.status(), loaded.passed);
      }
    }
    return loaded;
  }

 private:
  // Returns the libraries to try, the preferred one first.
  std::vector<Code> codes_of(const std::string& device) const {
    const bool chosen = !text_option(options_, "library").empty() ||
                        !text_option(options_, "system_library_prefix").empty();
    std::vector<Code> codes = chosen ? std::vector<Code>{} : linked_codes(manifest_);
    linked_ = !codes.empty();
    if (linked_) return codes_for(device, codes);
    const std::string usual = device.empty() || device == "auto" ? "cpu" : device;
    const std::string library = library_of(options_, manifest_, folder_);
    return {{usual, "", library, tower_of(library), {}}};
  }

  void load(const Code& code, Loaded& loaded) const {
    open_driver(code.device.substr(0, code.device.find(':')), text_option(options_, "driver"),
                programs_);
    wherry_model* model = nullptr;
    check(wherry_model_load(code.library.c_str(), folder_.c_str(), code.device.c_str(),
                            model_options(options_, code).c_str(), &model));
    loaded.model.reset(model);
    wherry_engine* engine = nullptr;
    check(
        wherry_engine_create(model, nullptr, engine_config(options_, manifest_).c_str(), &engine));
    loaded.engine.reset(engine);
    loaded.code = code;
  }

  // Runs one token, because drivers compile kernels at their first launch. Throws Error.
  static void try_a_step(wherry_engine* engine) {
    wherry_params params;
    wherry_params_init(&params);
    params.max_tokens = 1;
    const int32_t token = 0;
    check(wherry_engine_add(engine, 1, &token, 1, &params));
    constexpr int kSteps = 16;  // more than a request of one token takes
    for (int i = 0; i < kSteps; ++i) {
      wherry_event event{};
      size_t n = 0;
      check(wherry_engine_step(engine, &event, 1, &n));
      if (n == 0) continue;
      if (event.finish == WHERRY_ERROR) throw Error(WHERRY_INTERNAL, wherry_last_error());
      if (event.finish != WHERRY_RUNNING) break;
    }
    check(wherry_engine_reset(engine));
  }

  static std::string name_of(const Code& code) {
    return code.name.empty() ? code.device : code.name;
  }

  [[noreturn]] static void refuse(wherry_status status, const std::vector<PassedOver>& passed) {
    Problems problems;
    for (const PassedOver& one : passed) problems.add(one.name, ": ", one.reason);
    problems.raise(status, "no code of the model runs on this machine");
    throw Error(status, "");
  }

  const std::string& folder_;
  const Fields& options_;
  const Manifest& manifest_;
  std::string programs_;  // folder of compiled kernels; "" if there is none
  mutable bool linked_ = false;
};

}  // namespace

bool is_engine_option(const std::string& name) {
  return std::any_of(std::begin(kEngineOptions), std::end(kEngineOptions),
                     [&](const char* known) { return name == known; });
}

std::string text_option(const Fields& options, const char* name) {
  const Value* value = options.find(name);
  if (value != nullptr && !value->is_string()) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("option \"") + name + "\" is no text");
  }
  return value ? value->text() : "";
}

Loaded load_model(const std::string& folder, const Fields& options, const Manifest& manifest) {
  return Loader(folder, options, manifest).load();
}

}  // namespace wherry::app
