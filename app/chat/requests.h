// Runs the requests of a model, from JSON to JSON; has no threads and no engine of its own.
#ifndef WHERRY_APP_CHAT_REQUESTS_H_
#define WHERRY_APP_CHAT_REQUESTS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/chat/core.h"
#include "app/chat/generation.h"
#include "app/chat/plan.h"
#include "app/chat/response.h"

namespace wherry::app {

// Reads the JSON of a request. Throws RequestError.
Value request_of(std::string_view json);
// What a host must know of a request before it starts it.
struct RequestSummary {
  int64_t outputs;  // number of answers: n for each prompt, or a text's vector or score
  bool stream;
};

// Validates a request of a task (see RequestOptions) without a model. Throws RequestError.
RequestSummary check_request(const std::string& task, const Value& request);

class Requests {
 public:
  // The arguments must outlive the object.
  Requests(const Model& model, Core& core, GrammarSource& grammars)
      : model_(model), core_(core), grammars_(grammars) {}

  // Starts a request from any thread and returns its id. The listener gets the response from within
  // `hear`.
  int64_t start(std::string json, Listener listener);
  // Starts a request under an id of the caller, and plans it on this thread, which may be any.
  // `opened` is called from within `hear`, before the listener. Throws what `plan_of` does; once
  // the core has a job of the request, an error goes to the listener.
  using Opened = std::function<void(const std::shared_ptr<const Response>& response)>;
  void begin(int64_t id, std::string json, const RequestOptions& options, Opened opened,
             Listener listener);
  bool abort(int64_t id);  // returns whether the request was running
  size_t size() const;     // returns the number of running requests

  // Renders, tokenizes and submits a started request; one thread must make all these calls.
  bool plan_next();  // returns false if no request waits
  void plan_all();   // waits for further requests until `close` is called

  // Sends the output that the core's events add; one thread must make all these calls. error: the
  // message of failed events.
  void hear(const wherry_event* events, size_t n, const std::string& error);

  // Ends every request. Returns the core's ids of the requests to abort, after planning has
  // stopped.
  std::vector<uint64_t> close();
  void abandon();     // ends the requests that wait for grammars
  bool over() const;  // whether `close` was called and all requests have ended

 private:
  struct Request {
    int64_t id;
    std::string json;
    Listener listener;
    bool aborted = false;
    RequestOptions options = {};
    Opened opened = nullptr;
    std::shared_ptr<Response> response;  // set when the request is planned
    std::vector<uint64_t>
        core_ids;  // the core's id of each submitted job; 0 after the job has ended
    std::function<void(size_t job, uint64_t id)> add;  // adds a job to the core; throws Error
    size_t jobs = 0;                                   // number of all jobs
    size_t ended = 0;                                  // number of jobs that have ended
  };
  using RequestPtr = std::shared_ptr<Request>;
  // A request to open, or to end if it has the JSON of an error.
  struct Ready {
    RequestPtr request;
    std::string failure;
  };

  void plan(const RequestPtr& request);
  void submit_plan(const RequestPtr& request);         // plans and submits a request; throws
  void compile(const RequestPtr& request, Plan plan);  // compiles the constraint before `submit`
  void abandon(const RequestPtr& request);  // ends the request if it waits for its grammar
  template <typename Work>
  // An exception of `work` ends the request.
  void attempt(const RequestPtr& request, const Work& work);
  void submit(const RequestPtr& request, Plan plan);
  // Submits the first of n jobs. add: adds a job of this index to the core under this id; throws
  // Error.
  void submit(const RequestPtr& request, std::shared_ptr<Response> response, size_t n,
              std::function<void(size_t job, uint64_t id)> add);
  // Submits further jobs, as many as the request's window has room for. Throws Error.
  void refill(const RequestPtr& request);
  void submit_vectors(const RequestPtr& request, VectorTask task, const Value& given);
  // Adds a job to the core; throws Error. images: null if there are none.
  void add(uint64_t id, const Plan& plan, const Job& job, const PromptImages* images);
  void refuse(const RequestPtr& request, const std::string& error_json);
  std::vector<uint64_t> submitted(const RequestPtr& request) const;  // the core's ids that run
  bool gone(const RequestPtr& request);
  bool is_submitted(const RequestPtr& request);  // whether `hear` may have opened its response
  std::vector<RequestPtr> requests() const;
  void open(const Ready& ready);
  void take(const wherry_event* events, size_t n, const std::string& error);
  void end(const RequestPtr& request);

  const Model& model_;
  Core& core_;
  GrammarSource& grammars_;

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable planned_;
  std::deque<RequestPtr> waiting_;  // requests to plan
  std::deque<Ready> ready_;
  std::map<int64_t, RequestPtr> requests_;  // all running requests by id
  // Choices by the core's ids.
  std::unordered_map<uint64_t, std::pair<RequestPtr, size_t>> choices_;
  int64_t next_id_ = 1;
  uint64_t next_core_id_ = 1;
  bool closing_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_REQUESTS_H_
