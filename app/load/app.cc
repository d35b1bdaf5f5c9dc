#include "app/load/app.h"

#include <cstdlib>  // defines __GLIBC__ if the C library is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "app/load/status.h"
#include "app/value/json_text.h"

namespace wherry::app {

namespace {

constexpr size_t kEvents = 64;  // upper bound on events read per call

Value rows_of(const std::vector<PassedOver>& passed) {
  json::Values rows;
  for (const PassedOver& one : passed) {
    rows.push_back(json::make_dict({{"code", one.name}, {"reason", one.reason}}));
  }
  return json::make_list(std::move(rows));
}

}  // namespace

void EngineCore::add(uint64_t id, const std::vector<int32_t>& prompt, const wherry_params& params) {
  check(wherry_engine_add(engine_.get(), id, prompt.data(), prompt.size(), &params));
}

void EngineCore::abort(uint64_t id) { wherry_engine_abort(engine_.get(), id); }

void EngineCore::wake() { wherry_engine_wake(engine_.get()); }

App::App(const std::string& name, TextInterface text_interface, ModelPtr model, EnginePtr engine,
         int64_t context, int64_t vocab_size, MakeGrammarCompiler make)
    : text_interface_(std::move(text_interface)),
      model_(model_of(name, text_interface_, context, vocab_size)),
      core_(std::move(model), std::move(engine)),
      grammars_(*text_interface_.tokenizer, vocab_size, std::move(make)),
      requests_(model_, core_, grammars_) {
  check(wherry_engine_start(core_.engine()));
  planner_ = std::make_unique<Thread>([this] { requests_.plan_all(); });
  listener_ = std::make_unique<Thread>([this] { hear(); });
}

App::~App() {
  const std::vector<uint64_t> running = requests_.close();
  planner_.reset();  // rejects the requests that are not planned yet
  requests_.abandon();
  grammars_.close();
  for (uint64_t id : running) core_.abort(id);
  core_.wake();
  listener_.reset();  // ends its thread, which still receives the last events
}

void App::trim() {
  grammars_.forget();
  check(wherry_engine_clear_cache(engine()));
#ifdef __GLIBC__
  malloc_trim(0);  // needed because glibc keeps freed memory below a block in use
#endif
}

std::string App::stats() const {
  wherry_stats stats{};
  stats.size = sizeof stats;
  check(wherry_engine_stats(engine(), &stats));
  const auto count = [](uint64_t value) { return Value(static_cast<int64_t>(value)); };
  return json::to_compact_json(json::make_dict({
      {"model", model_.name},
      {"device", code_.device},
      {"code", code_.name.empty() ? Value() : Value(code_.name)},
      {"passed_over", rows_of(passed_)},
      {"context", model_.abilities.context},
      {"chat", model_.chat_format != nullptr},
      {"images", model_.vision != nullptr && model_.vision->processor != nullptr},
      {"requests", Value::size(requests_.size())},
      {"waiting", stats.waiting},
      {"prefilling", stats.prefilling},
      {"running", stats.running},
      {"steps", count(stats.steps)},
      {"prompt_tokens", count(stats.prompt_tokens)},
      {"cached_tokens", count(stats.cached_tokens)},
      {"decode_tokens", count(stats.decode_tokens)},
      {"finished", count(stats.finished)},
      {"preemptions", count(stats.preemptions)},
      {"pages_total", stats.pages_total},
      {"pages_free", stats.pages_free},
      {"pages_cached", stats.pages_cached},
      {"disk_problem", stats.disk_problem == nullptr ? Value() : Value(stats.disk_problem)},
      {"page_size", stats.page_size},
      {"model_seconds", stats.model_seconds},
      {"sample_seconds", stats.sample_seconds},
      {"host_seconds", stats.host_seconds},
  }));
}

void App::hear() {
  std::vector<wherry_event> events(kEvents);
  while (true) {
    size_t n = 0;
    const int status = wherry_engine_wait(engine(), events.data(), events.size(), -1, &n);
    requests_.hear(events.data(), status == WHERRY_OK ? n : 0, wherry_last_error());
    // The thread ends when all requests have ended, or if there is no engine.
    if (requests_.over() || status != WHERRY_OK) return;
  }
}

}  // namespace wherry::app
