// A request whose answer is numbers: its jobs for the core, and what makes a response of their
// results.
#ifndef WHERRY_APP_VECTORS_VECTOR_PLAN_H_
#define WHERRY_APP_VECTORS_VECTOR_PLAN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/request/fields.h"
#include "app/template/chat_template.h"
#include "app/text/tokenizer.h"
#include "app/vectors/head.h"

namespace wherry::app {

using Gone = std::function<bool()>;  // whether the client has aborted the request

// What requests for numbers need of a model.
struct VectorModel {
  std::string name;
  const Tokenizer* tokenizer;
  const jinja::ChatTemplate* chat_template;  // null if the model has none
  Head head;
  int64_t vocab_size;
  int64_t context;  // upper bound on the tokens of a text
};

struct VectorJob {
  size_t prompt;  // index of its tokens
  // The token whose log-probability after the prompt is asked for; -1: the prompt is embedded.
  int32_t token = -1;
};

struct VectorResult {
  std::vector<float> values;  // the embedding, or the logits of classes
  float logprob = 0;
};

struct VectorPlan {
  std::string user, salt;
  std::vector<std::string> ignored;  // names of fields that were sent but have no effect
  std::vector<std::vector<int32_t>> prompts;
  std::vector<VectorJob> jobs;
  // Returns the response's JSON from the jobs' results. Throws Error for damaged results.
  std::function<std::string(const std::vector<VectorResult>&)> complete;

  // Adds a job that embeds these tokens.
  void embed(std::vector<int32_t> prompt);
  // Returns {"prompt_tokens", "total_tokens"}; a prompt of several jobs counts once.
  Value usage() const;
};

// kNone: the request is a chat or a completion.
enum class VectorTask { kNone, kEmbed, kClassify, kRerank, kScore };

// Returns what a request asks for: its "task", or else "query" asks for a ranking and "input" for
// embeddings. Throws RequestError for an unknown task.
VectorTask task_of(const Value& request);

// Returns the task of this name; kNone for other names.
VectorTask task_named(const std::string& name);

// Makes the plan of a request, whose task is not kNone. Throws RequestError or jinja::Abandoned.
VectorPlan vector_plan(VectorTask task, const Value& request, const VectorModel& model,
                       const Gone& gone);

// Returns the model's name in a response: the request's, or else the model's own.
std::string name_of(const Fields& fields, const VectorModel& model);
// Returns the JSON of vLLM's lists, which have an id and a time. kind: what the id begins with.
std::string list_response(const char* kind, const std::string& model, std::vector<Value> data,
                          const Value& usage);

VectorPlan embedding_plan(const Value& request, const VectorModel& model, const Gone& gone);
VectorPlan class_plan(const Value& request, const VectorModel& model, const Gone& gone);
VectorPlan ranking_plan(const Value& request, const VectorModel& model, const Gone& gone);
VectorPlan score_plan(const Value& request, const VectorModel& model, const Gone& gone);

}  // namespace wherry::app

#endif  // WHERRY_APP_VECTORS_VECTOR_PLAN_H_
