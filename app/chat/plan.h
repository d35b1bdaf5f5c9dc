// Turns a request into a plan with what the core needs: prompt tokens, sampling parameters, seeds.
#ifndef WHERRY_APP_CHAT_PLAN_H_
#define WHERRY_APP_CHAT_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/request_options.h"
#include "app/chat/sampling.h"
#include "app/chat/text_interface.h"
#include "app/chat/vision.h"
#include "app/grammar/compiled_grammar.h"
#include "app/request/fields.h"
#include "app/tools/chat_format.h"
#include "app/tools/output_parser.h"
#include "app/vectors/vector_plan.h"

namespace wherry::app {

// One choice of a response, which the core runs as a request of its own.
struct Job {
  std::vector<int32_t> prompt;
  std::vector<int32_t> source;  // what the encoder of an encoder-decoder reads
  uint64_t seed;
  int32_t max_tokens;
};

// The images of a prompt, in the core's form, and what its arrays belong to.
struct PromptImages {
  std::vector<std::shared_ptr<const PreparedImage>> images;
  std::vector<wherry_image> spans;
};

struct Plan {
  bool chat;
  std::string model;  // name of the model in responses
  bool stream;
  std::vector<Job> jobs;
  std::shared_ptr<const PromptImages> images;  // of all jobs; null if there are none
  Sampling sampling;  // sampling parameters of all jobs, except for their seeds and limits
  std::optional<Constraint> constraint;  // constraint of all outputs
  CompiledGrammarPtr
      grammar;  // compiled constraint; null if it is not compiled yet or there is none
  std::vector<std::string> stops;
  bool keeps_stops = false;        // whether the output includes the stop string that ends it
  std::vector<int32_t> shown_ids;  // stop tokens whose text belongs to the output
  bool logprobs;                   // whether the request asks for log probabilities of the output
  bool prompt_logprobs = false;    // and of the prompt (vLLM's field)
  bool echo = false;               // whether the response begins with the prompt's text
  bool writes = true;     // if false, the response drops the one token that the core samples
  bool continues;         // whether the output continues the prompt's text
  int64_t prompt_tokens;  // prompt tokens, each prompt counted once for any n
  size_t n;               // choices per prompt; the jobs of a prompt are adjacent
  bool include_usage;
  int64_t room = 0;              // tokens that an output may have without the host's limit
  int64_t dropped_messages = 0;  // messages that `truncation` has left out
  Texts adapted;                 // names of the steps that adapted the messages to the template
  Texts ignored;                 // names of fields that were sent but have no effect
  Reading reading;               // what the parser has to find in the output
  bool shows_reasoning = true;
  Texts custom;                  // names of custom tools, which the model sees as functions
  bool in_parts = false;         // whether the response has the form of PartsReply
  bool named = false;            // whether the output is a call of the tool that the request names
  std::vector<int32_t> visible;  // special tokens whose names the detokenizer emits
};

struct Model {
  std::string name;
  Abilities abilities;
  const ChatFormat*
      chat_format;  // null if the model has no chat template, so that it only completes text
  VectorModel vectors;
  // Tokens that the decoder of an encoder-decoder begins with; empty for other models.
  std::vector<int32_t> decoder_start = {};
  const Vision* vision = nullptr;    // null if the model reads text alone
  bool host_makes_grammars = false;  // constraints are then JSON for the host, see host_abi.h
};
// Returns the properties of a model for plan_of. speech: must outlive the result. context: the
// maximum number of tokens of one request.
Model model_of(const std::string& name, const TextInterface& text_interface, int64_t context,
               int64_t vocab_size);

// Makes the plan of a request; its constraint is not compiled yet. gone: returns whether the client
// has aborted the request. Throws RequestError or jinja::Abandoned.
Plan plan_of(const Value& request, const Model& model, const std::function<bool()>& gone,
             const RequestOptions& options = {});

// Returns the tokens of a chat's messages in the model's template. Throws as `plan_of`.
std::vector<int32_t> chat_prompt(const Value& request, const Model& model, bool add_special_tokens,
                                 const std::function<bool()>& gone);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_PLAN_H_
