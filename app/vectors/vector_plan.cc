#include "app/vectors/vector_plan.h"

#include <ctime>
#include <utility>

#include "app/request/request_error.h"
#include "app/request/response_id.h"
#include "app/value/json_text.h"

namespace wherry::app {

void VectorPlan::embed(std::vector<int32_t> prompt) {
  jobs.push_back({prompts.size()});
  prompts.push_back(std::move(prompt));
}

Value VectorPlan::usage() const {
  int64_t tokens = 0;
  for (const auto& prompt : prompts) tokens += static_cast<int64_t>(prompt.size());
  return json::make_dict({{"prompt_tokens", tokens}, {"total_tokens", tokens}});
}

std::string name_of(const Fields& fields, const VectorModel& model) {
  const std::string given = fields.text("model");
  return given.empty() ? model.name : given;
}

std::string list_response(const char* kind, const std::string& model, std::vector<Value> data,
                          const Value& usage) {
  return json::to_compact_json(
      json::make_dict({{"id", new_id(kind)},
                       {"created", static_cast<int64_t>(std::time(nullptr))},
                       {"model", model},
                       {"data", json::make_list(std::move(data))},
                       {"usage", usage},
                       {"object", "list"}}));
}

VectorTask task_named(const std::string& name) {
  if (name == "embed") return VectorTask::kEmbed;
  if (name == "classify") return VectorTask::kClassify;
  if (name == "rerank") return VectorTask::kRerank;
  return name == "score" ? VectorTask::kScore : VectorTask::kNone;
}

VectorTask task_of(const Value& request) {
  if (!request.is_dict()) return VectorTask::kNone;
  const auto has = [&](const char* name) { return request.dict().find(name) != nullptr; };
  const Value* task = request.dict().find("task");
  if (task != nullptr && !task->is_none()) {
    const VectorTask named = task_named(task->is_string() ? task->text() : "");
    if (named != VectorTask::kNone) return named;
    throw RequestError("task takes embed, classify, rerank or score", "task");
  }
  if (has("messages") || has("prompt")) return VectorTask::kNone;
  if (has("query")) return VectorTask::kRerank;
  return has("input") ? VectorTask::kEmbed : VectorTask::kNone;
}

VectorPlan vector_plan(VectorTask task, const Value& request, const VectorModel& model,
                       const Gone& gone) {
  const auto make = task == VectorTask::kClassify ? class_plan
                    : task == VectorTask::kRerank ? ranking_plan
                    : task == VectorTask::kScore  ? score_plan
                                                  : embedding_plan;
  VectorPlan plan = make(request, model, gone);
  const Fields fields(request);  // they are checked
  plan.user = fields.text("user");
  plan.salt = fields.text("cache_salt");
  return plan;
}

}  // namespace wherry::app
