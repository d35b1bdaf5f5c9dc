#include "app/chat/open.h"

#include <algorithm>

#include "app/chat/libraries.h"
#include "app/chat/status.h"
#include "app/template/json_text.h"

namespace wherry::app {

namespace {

using Items = std::vector<std::pair<Value, Value>>;

constexpr const char* kEngineOptions[] = {"context",       "kv_tokens",    "max_batch",
                                          "prefill_chunk", "prefix_cache", "cache_dir",
                                          "cache_bytes",   "max_drafts"};
constexpr const char* kAppOptions[] = {
    "device", "driver",  "library",  "system_library_prefix", "runtime",
    "name",   "threads", "pack_dir", "check_weights",         "tool_format"};

bool among(const Value& name, const char* const* begin, const char* const* end) {
  return std::any_of(begin, end, [&](const char* known) { return name.text() == known; });
}

Value read_options(const std::string& json) {
  Value options;
  try {
    options = json.empty() ? jinja::make_dict({}) : jinja::from_json(json);
  } catch (const jinja::Failure& failure) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("the options are no JSON: ") + failure.what());
  }
  if (!options.is_dict()) throw Error(WHERRY_INVALID_ARGUMENT, "the options are no JSON object");
  Problems problems;
  for (const auto& [name, value] : options.dict().items) {
    if (!among(name, std::begin(kEngineOptions), std::end(kEngineOptions)) &&
        !among(name, std::begin(kAppOptions), std::end(kAppOptions))) {
      problems.add("unknown option \"", name.text(), "\"");
    }
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, "the options cannot be used");
  return options;
}

std::string text_option(const Fields& options, const char* name) {
  const Value* value = options.find(name);
  if (value != nullptr && !value->is_string()) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("option \"") + name + "\" is no text");
  }
  return value ? value->text() : "";
}

class Progress {
 public:
  explicit Progress(const wherry_app_progress* given) : given_(given) {}
  void operator()(const char* phase, int64_t done, int64_t total) const {
    if (given_ == nullptr || given_->report == nullptr) return;
    if (given_->report(given_->context, phase, done, total) != 0) throw Cancelled();
  }

 private:
  const wherry_app_progress* given_;
};

// Returns the engine's configuration from the options, with the model's compile-time values as
// defaults.
std::string engine_config(const Fields& options, const Manifest& manifest) {
  Items made;
  const std::pair<const char*, int64_t> compiled[] = {{"context", manifest.context},
                                                      {"max_batch", manifest.max_batch},
                                                      {"prefill_chunk", manifest.prefill_chunk}};
  for (const auto& [name, value] : compiled) {
    if (value > 0) made.emplace_back(name, value);
  }
  for (const char* name : kEngineOptions) {
    if (const Value* value = options.find(name)) made.emplace_back(name, *value);
  }
  return jinja::to_compact_json(jinja::make_dict(std::move(made)));
}

std::string model_options(const Fields& options) {
  Items made;
  for (const char* name : {"threads", "pack_dir", "check_weights"}) {
    if (const Value* value = options.find(name)) made.emplace_back(name, *value);
  }
  return jinja::to_compact_json(jinja::make_dict(std::move(made)));
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

struct Limits {
  int64_t context, vocab_size;
};

Limits limits_of(wherry_model* model, wherry_engine* engine, const Fields& options,
                 const Tokenizer& tokenizer) {
  const Value metadata = jinja::from_json(wherry_model_metadata(model));
  const Fields fields(metadata);
  wherry_stats stats{};
  stats.size = sizeof stats;
  check(wherry_engine_stats(engine, &stats));
  const int64_t asked = options.integer("context").value_or(fields.integer("context").value_or(0));
  const int64_t cache = static_cast<int64_t>(stats.pages_total) * stats.page_size;
  const auto tokens = static_cast<int64_t>(tokenizer.vocab_size());
  return {std::min(asked, cache), fields.integer("vocab_size").value_or(tokens)};
}

}  // namespace

std::unique_ptr<App> open_app(const std::string& folder, const std::string& options_json,
                              const wherry_app_progress* given) {
  const Fields options(read_options(options_json));
  const Progress progress(given);
  progress("files", 0, 1);
  const Manifest manifest = read_manifest(folder);
  progress("files", 1, 1);
  const std::string library = library_of(options, manifest, folder);
  std::string device = text_option(options, "device");
  if (device.empty()) device = "cpu";
  open_runtime(text_option(options, "runtime"));
  open_driver(device.substr(0, device.find(':')), text_option(options, "driver"));
  progress("tokenizer", 0, 1);
  Speech speech = read_speech(files_of(folder), text_option(options, "tool_format"));
  progress("tokenizer", 1, 1);
  progress("weights", 0, manifest.bytes);
  wherry_model* loaded = nullptr;
  check(wherry_model_load(library.c_str(), folder.c_str(), device.c_str(),
                          model_options(options).c_str(), &loaded));
  ModelPtr model(loaded);
  wherry_engine* made = nullptr;
  check(
      wherry_engine_create(model.get(), nullptr, engine_config(options, manifest).c_str(), &made));
  EnginePtr engine(made);
  progress("weights", manifest.bytes, manifest.bytes);
  const Limits limits = limits_of(model.get(), engine.get(), options, *speech.tokenizer);
  std::string name = text_option(options, "name");
  if (name.empty()) name = manifest.name;
  auto app = std::make_unique<App>(std::move(name), std::move(speech), std::move(model),
                                   std::move(engine), limits.context, limits.vocab_size);
  progress("ready", 1, 1);
  return app;
}

}  // namespace wherry::app
