// A running request for numbers: it collects a result for each job and answers once.
#ifndef WHERRY_APP_CHAT_VECTOR_RESPONSE_H_
#define WHERRY_APP_CHAT_VECTOR_RESPONSE_H_

#include <string>
#include <vector>

#include "app/chat/core.h"
#include "app/chat/request_options.h"
#include "app/chat/response.h"
#include "app/vectors/vector_plan.h"

namespace wherry::app {

class VectorResponse : public Response {
 public:
  VectorResponse(VectorPlan plan, Listener listener, const RequestOptions& options = {});

  size_t jobs() const { return plan_.jobs.size(); }
  // Adds a job to the core as a request of this id. Throws Error.
  void add(size_t job, uint64_t id, Core& core) const;

  void open() override {}
  void push(size_t job, const wherry_event& event, const std::string& error) override;
  void flush() override;
  bool done() const override { return open_ == 0; }
  bool ended(size_t job) const override { return ended_[job]; }
  bool must_abort(size_t) const override { return false; }
  void fail(const std::string& error_json) override;
  Totals totals() const override;
  std::string about() const override;

 private:
  const VectorPlan plan_;
  uint64_t user_, salt_;
  const Listener listener_;
  std::vector<VectorResult> results_;  // of each job
  std::vector<bool> ended_;
  size_t open_;  // number of jobs that run
  bool over_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_VECTOR_RESPONSE_H_
