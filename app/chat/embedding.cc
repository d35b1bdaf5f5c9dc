#include "app/chat/embedding.h"

#include <utility>

#include "app/chat/choice.h"
#include "app/chat/sampling.h"
#include "support/error.h"

namespace wherry::app {

bool is_embedding(const Value& request) {
  if (!request.is_dict()) return false;
  const auto has = [&](const char* name) { return request.dict().find(name) != nullptr; };
  return has("input") && !has("messages") && !has("prompt");
}

Embedding::Embedding(EmbeddingPlan plan, std::string model, Listener listener)
    : plan_(std::move(plan)),
      model_(std::move(model)),
      listener_(std::move(listener)),
      vectors_(plan_.prompts.size()),
      ended_(plan_.prompts.size()),
      open_(plan_.prompts.size()) {}

wherry_params Embedding::params() const {
  wherry_params made;
  wherry_params_init(&made);
  made.embed = 1;
  made.user = number_of(plan_.user);
  made.salt = number_of(plan_.salt);
  return made;
}

void Embedding::push(size_t job, const wherry_event& event, const std::string& error) {
  if (over_ || ended_[job] || event.finish == WHERRY_RUNNING) return;
  ended_[job] = true;
  --open_;
  if (event.finish == WHERRY_ABORTED) throw Failed{"The request was aborted", "aborted", false};
  if (event.finish != WHERRY_DONE) throw Failed{error, "engine_error", false};
  try {
    vectors_[job] = finished(plan_, event.embedding, static_cast<size_t>(event.n_embedding));
  } catch (const Error& damage) {
    throw Failed{damage.what(), "engine_error", false};
  }
}

void Embedding::flush() {
  if (over_ || !done()) return;
  over_ = true;
  listener_(embedding_answer(plan_, model_, vectors_), true);
}

void Embedding::fail(const std::string& error_json) {
  if (over_) return;
  over_ = true;
  open_ = 0;
  listener_(error_json, true);
}

}  // namespace wherry::app
