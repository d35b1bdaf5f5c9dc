#include "app/load/open.h"

#include <algorithm>

#include "app/decode/decode.h"
#include "app/load/libraries.h"
#include "app/load/load.h"
#include "app/load/status.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

constexpr const char* kAppOptions[] = {
    "device", "driver",  "library",  "system_library_prefix", "runtime",
    "name",   "threads", "pack_dir", "check_weights",         "tool_format"};

bool is_app_option(const std::string& name) {
  return std::any_of(std::begin(kAppOptions), std::end(kAppOptions),
                     [&](const char* known) { return name == known; });
}

Value read_options(const std::string& json) {
  Value options;
  try {
    options = json.empty() ? json::make_dict({}) : json::from_json(json);
  } catch (const json::Failure& failure) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("the options are no JSON: ") + failure.what());
  }
  if (!options.is_dict()) throw Error(WHERRY_INVALID_ARGUMENT, "the options are no JSON object");
  Problems problems;
  for (const auto& [name, value] : options.dict().items) {
    if (!is_engine_option(name.text()) && !is_app_option(name.text())) {
      problems.add("unknown option \"", name.text(), "\"");
    }
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, "the options cannot be used");
  return options;
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

struct Limits {
  int64_t context, vocab_size, embedding_size;
  bool writes_text;
};

// Returns what a model does with images; null if it takes none, or this build has no decoder.
std::unique_ptr<const Vision> vision_of(const Files& files, const Tokenizer& tokenizer) {
  const Value settings = read_object(files, "wherry-vision.json");
  if (settings.dict().items.empty() || !decodes_images()) return nullptr;
  auto vision = read_vision(
      settings, [&](const std::string& token) { return tokenizer.id_of(token).value_or(-1); });
  vision->decode = decode_image;
  return vision;
}

// Whether a library has the function that generates text; one that names no functions has it.
bool writes_text(const Fields& metadata) {
  const Value* entries = metadata.find("entries");
  if (entries == nullptr) return true;
  const json::Values& names = entries->items();
  return std::any_of(names.begin(), names.end(),
                     [](const Value& name) { return name.text() == "forward"; });
}

Limits limits_of(wherry_model* model, wherry_engine* engine, const Fields& options,
                 const Tokenizer& tokenizer) {
  const Value metadata = json::from_json(wherry_model_metadata(model));
  const Fields fields(metadata);
  wherry_stats stats{};
  stats.size = sizeof stats;
  check(wherry_engine_stats(engine, &stats));
  const int64_t requested =
      options.integer("context").value_or(fields.integer("context").value_or(0));
  const int64_t cache = static_cast<int64_t>(stats.pages_total) * stats.page_size;
  const auto tokens = static_cast<int64_t>(tokenizer.vocab_size());
  // An encoder has no cache: it reads a text in one step.
  return {cache > 0 ? std::min(requested, cache) : requested,
          fields.integer("vocab_size").value_or(tokens),
          fields.integer("embedding_size").value_or(0), writes_text(fields)};
}

}  // namespace

std::unique_ptr<App> open_app(const std::string& folder, const std::string& options_json,
                              const wherry_app_progress* given) {
  const Fields options(read_options(options_json));
  const Progress progress(given);
  progress("files", 0, 1);
  const Manifest manifest = read_manifest(folder);
  progress("files", 1, 1);
  open_runtime(text_option(options, "runtime"));
  progress("tokenizer", 0, 1);
  const Files files = files_of(folder);
  TextInterface text_interface = read_text_interface(files, text_option(options, "tool_format"));
  if (auto vision = vision_of(files, *text_interface.tokenizer)) {
    text_interface.vision = std::move(vision);
  }
  progress("tokenizer", 1, 1);
  progress("weights", 0, manifest.bytes);
  Loaded loaded = load_model(folder, options, manifest);
  progress("weights", manifest.bytes, manifest.bytes);
  if (loaded.code.tower.empty()) text_interface.vision = nullptr;
  const Limits limits =
      limits_of(loaded.model.get(), loaded.engine.get(), options, *text_interface.tokenizer);
  text_interface.head.size = limits.embedding_size;
  if (!limits.writes_text) text_interface.head.writes_text = false;
  std::string name = text_option(options, "name");
  if (name.empty()) name = manifest.name;
  auto app =
      std::make_unique<App>(std::move(name), std::move(text_interface), std::move(loaded.model),
                            std::move(loaded.engine), limits.context, limits.vocab_size);
  app->runs_on(std::move(loaded.code), std::move(loaded.passed));
  progress("ready", 1, 1);
  return app;
}

}  // namespace wherry::app
