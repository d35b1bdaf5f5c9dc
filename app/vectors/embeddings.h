// Requests for embeddings: their tokens for the core, and the response in OpenAI's shape.
#ifndef WHERRY_APP_VECTORS_EMBEDDINGS_H_
#define WHERRY_APP_VECTORS_EMBEDDINGS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/request/fields.h"
#include "app/text/tokenizer.h"
#include "app/vectors/head.h"

namespace wherry::app {

// What embeddings need of a model.
struct Embedder {
  const Tokenizer* tokenizer;
  Head head;
  int64_t vocab_size;
  int64_t context;  // upper bound on the tokens of a text
};

// A validated request for embeddings.
struct EmbeddingPlan {
  std::string model;                          // name in the response; "": the model's own
  std::vector<std::vector<int32_t>> prompts;  // the tokens of each input
  std::string user, salt;
  int64_t dimensions = 0;  // leading dimensions that are returned; 0: all
  bool base64 = false;     // whether vectors are little-endian float32 in base64
  bool normalize = true;
};

// Makes the plan of a request. gone: returns whether the client has aborted it. Throws RequestError
// or jinja::Abandoned.
EmbeddingPlan embedding_plan(const Value& request, const Embedder& model,
                             const std::function<bool()>& gone);

// Returns an embedding as it is answered: its leading dimensions, scaled to length 1 if the model
// says so. values: float32 [n]. Throws Error(WHERRY_INTERNAL) if a value is NaN or infinite.
std::vector<float> finished(const EmbeddingPlan& plan, const float* values, size_t n);

// Returns the JSON of the response with one vector for each input, in their order.
std::string embedding_answer(const EmbeddingPlan& plan, const std::string& model,
                             const std::vector<std::vector<float>>& vectors);

}  // namespace wherry::app

#endif  // WHERRY_APP_VECTORS_EMBEDDINGS_H_
