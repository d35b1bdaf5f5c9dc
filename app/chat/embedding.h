// A running request for embeddings: it collects a vector for each input and answers once.
#ifndef WHERRY_APP_CHAT_EMBEDDING_H_
#define WHERRY_APP_CHAT_EMBEDDING_H_

#include <string>
#include <vector>

#include "app/chat/response.h"
#include "app/vectors/embeddings.h"

namespace wherry::app {

// Whether a request asks for embeddings: it has "input", and neither "messages" nor "prompt".
bool is_embedding(const Value& request);

class Embedding : public Response {
 public:
  // model: the name in the response, unless the request has one.
  Embedding(EmbeddingPlan plan, std::string model, Listener listener);

  const EmbeddingPlan& plan() const { return plan_; }
  wherry_params params() const;  // parameters of each job

  void open() override {}
  void push(size_t job, const wherry_event& event, const std::string& error) override;
  void flush() override;
  bool done() const override { return open_ == 0; }
  bool ended(size_t job) const override { return ended_[job]; }
  bool must_abort(size_t) const override { return false; }
  void fail(const std::string& error_json) override;

 private:
  const EmbeddingPlan plan_;
  const std::string model_;
  const Listener listener_;
  std::vector<std::vector<float>> vectors_;  // of each input
  std::vector<bool> ended_;
  size_t open_;  // number of jobs that run
  bool over_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_EMBEDDING_H_
