// Turns a request into what the core needs: prompt tokens, sampling parameters, seeds.
#ifndef WHERRY_APP_CHAT_PLAN_H_
#define WHERRY_APP_CHAT_PLAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/sampling.h"
#include "app/chat/speech.h"
#include "app/grammar/held_to.h"
#include "app/request/fields.h"
#include "app/tools/dialect.h"
#include "app/tools/output_parser.h"

namespace wherry::app {

// One choice of a response.
struct Job {
  std::vector<int32_t> prompt;
  uint64_t seed;
  int32_t max_tokens;
};

struct Plan {
  bool chat;
  std::string model;  // the model's name in responses
  bool stream;
  std::vector<Job> jobs;
  Sampling sampling;                     // of all jobs, except for their seeds and limits
  std::optional<Constraint> constraint;  // the constraint of all outputs
  HeldToPtr held_to;                     // compiled; null: not compiled yet, or no constraint
  std::vector<std::string> stops;
  bool logprobs;          // the request asks for log probabilities
  bool continues;         // the output continues the prompt's text
  int64_t prompt_tokens;  // counts each prompt once, for any n
  size_t n;               // choices per prompt; the jobs of a prompt are adjacent
  bool include_usage;
  Reading reading;  // what the parser looks for in the output
  bool shows_reasoning = true;
  bool named = false;            // the output is a call of the tool that the request names
  std::vector<int32_t> visible;  // special tokens whose names the detokenizer emits
};

struct Model {
  std::string name;
  Abilities abilities;
  const Dialect* dialect;  // null: no chat template, so the model only completes text
};
// speech: must outlive the model. context: the maximum number of tokens of one request.
Model model_of(std::string name, const Speech& speech, int64_t context, int64_t vocab_size);

// Makes a plan whose constraint is not compiled yet. gone: returns whether the client has aborted
// the request. Throws RequestError or jinja::Abandoned.
Plan plan_of(const Value& request, const Model& model, const std::function<bool()>& gone);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_PLAN_H_
