// From a request to what the core is asked: prompts in tokens, parameters, seeds.
#ifndef WHERRY_ENGINE_APP_CHAT_PLAN_H_
#define WHERRY_ENGINE_APP_CHAT_PLAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/fields.h"
#include "app/chat/sampling.h"
#include "app/grammar/constraint.h"
#include "app/grammar/grammars.h"
#include "app/tools/dialect.h"
#include "app/tools/output_parser.h"

namespace wherry::app {

// One choice of an answer.
struct Job {
  std::vector<int32_t> prompt;
  uint64_t seed;
  int32_t max_tokens;
};

struct Plan {
  bool chat;
  std::string model;  // what answers call it
  bool stream;
  std::vector<Job> jobs;
  Sampling sampling;                     // of all jobs, but for their seeds and limits
  std::optional<Constraint> constraint;  // what all outputs are held to,
  HeldToPtr held_to;                     // compiled; null: not yet, or they are held to nothing
  std::vector<std::string> stops;
  bool logprobs;          // whether they were asked for
  bool continues;         // the output continues the prompt's text
  int64_t prompt_tokens;  // each prompt once, whatever n
  size_t n;               // choices of each prompt; their jobs follow each other
  bool include_usage;
  Reading reading;  // what the output is looked through for
  bool shows_reasoning = true;
  bool named = false;            // it is a call of a tool that is named
  std::vector<int32_t> visible;  // special tokens that are seen by their names
};

struct Model {
  std::string name;
  Abilities abilities;
  const Dialect* dialect;  // null: it only completes text
};

// Its constraint is yet to be compiled. gone: whether nobody waits any more. Throws RequestError,
// or jinja::Abandoned.
Plan plan_of(const Value& request, const Model& model, const std::function<bool()>& gone);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_PLAN_H_
