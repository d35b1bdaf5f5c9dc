// A compiled folder that talks: the engine, what is known of its model, and the requests under way.
//
// Two threads: one plans requests (templates and tokens), one hears the engine's events and calls
// back; the engine steps on a third, its own. What requests are held to is compiled on a fourth
// (`Grammars`), which then gives them to the engine: those behind them go by.
#ifndef WHERRY_ENGINE_APP_CHAT_APP_H_
#define WHERRY_ENGINE_APP_CHAT_APP_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/chat/folder.h"
#include "app/chat/generation.h"
#include "app/chat/plan.h"
#include "app/chat/thread.h"
#include "wherry.h"

namespace wherry::app {

struct EngineDeleter {
  void operator()(wherry_engine* engine) const { wherry_engine_destroy(engine); }
};
struct ModelDeleter {
  void operator()(wherry_model* model) const { wherry_model_free(model); }
};
using EnginePtr = std::unique_ptr<wherry_engine, EngineDeleter>;
using ModelPtr = std::unique_ptr<wherry_model, ModelDeleter>;

class App {
 public:
  // context: tokens of one request, at most. make: what compiles grammars.
  App(std::string name, Speech speech, ModelPtr model, EnginePtr engine, int64_t context,
      int64_t vocab_size, MakeGrammarCompiler make = make_grammar_compiler);
  ~App();  // aborts what runs, and waits for its last calls

  int64_t start(std::string request, Listener listener);
  bool abort(int64_t id);  // whether it ran
  std::string stats() const;
  void trim();

  const Model& model() const { return model_; }
  wherry_engine* engine() const { return engine_.get(); }

 private:
  struct Request {
    int64_t id;
    std::string json;
    Listener listener;
    bool aborted = false;
    std::shared_ptr<Generation> generation;  // once it is planned
    std::vector<uint64_t> core_ids;          // of its choices; 0: it has ended
  };
  using RequestPtr = std::shared_ptr<Request>;
  // To be opened, or, with the JSON of an error, ended.
  struct Ready {
    RequestPtr request;
    std::string failure;
  };

  void plan_requests();
  void plan(const RequestPtr& request);
  void compile(const RequestPtr& request, Plan plan);  // what it is held to, before `submit`
  void abandon(const RequestPtr& request);             // if it waits for that
  template <typename Work>
  void attempt(const RequestPtr& request, const Work& work);  // refused if it throws
  void submit(const RequestPtr& request, Plan plan);
  void add(uint64_t id, const Plan& plan, const Job& job);  // to the core; throws Error
  void refuse(const RequestPtr& request, const std::string& error_json);
  bool gone(const RequestPtr& request);
  std::vector<RequestPtr> requests() const;
  void hear();
  void open(const Ready& ready);
  void take(const wherry_event* events, size_t n);
  void end(const RequestPtr& request);

  Speech speech_;
  Grammars grammars_;
  Model model_;
  ModelPtr core_model_;
  EnginePtr engine_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable planned_;
  std::deque<RequestPtr> waiting_;  // to be planned
  std::deque<Ready> ready_;
  std::map<int64_t, RequestPtr> requests_;                               // all that have not ended
  std::unordered_map<uint64_t, std::pair<RequestPtr, size_t>> choices_;  // by the core's ids
  int64_t next_id_ = 1;
  uint64_t next_core_id_ = 1;
  bool closing_ = false;

  std::unique_ptr<Thread> planner_, listener_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_APP_H_
