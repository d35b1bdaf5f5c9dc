// A chat app: a compiled model folder with an engine in this process, and the requests to its
// model.
//
// It has two threads: one plans requests (it renders templates and tokenizes), one receives the
// engine's events and calls the listeners; the engine runs steps on its own third thread. A fourth
// thread compiles the grammars of requests (`Grammars`); a request whose grammar is being compiled
// does not delay later requests.
#ifndef WHERRY_APP_CHAT_APP_H_
#define WHERRY_APP_CHAT_APP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/core.h"
#include "app/chat/requests.h"
#include "app/chat/text_interface.h"
#include "app/grammar/grammars.h"
#include "app/load/codes.h"
#include "app/support/thread.h"
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

class EngineCore : public Core {
 public:
  EngineCore(ModelPtr model, EnginePtr engine)
      : model_(std::move(model)), engine_(std::move(engine)) {}
  void add(uint64_t id, const std::vector<int32_t>& prompt, const wherry_params& params) override;
  void abort(uint64_t id) override;
  void wake() override;
  wherry_engine* engine() const { return engine_.get(); }

 private:
  ModelPtr model_;
  EnginePtr engine_;
};

class App {
 public:
  // context: the maximum number of tokens of one request. make: creates the grammar compiler.
  App(const std::string& name, TextInterface text_interface, ModelPtr model, EnginePtr engine,
      int64_t context, int64_t vocab_size, MakeGrammarCompiler make = compiler_of);
  ~App();  // aborts running requests and waits for their last callbacks

  int64_t start(std::string request, Listener listener) {
    return requests_.start(std::move(request), std::move(listener));
  }
  bool abort(int64_t id) { return requests_.abort(id); }  // returns whether the request was running
  // Sets the library that runs, and those that were passed over, for `stats`.
  void runs_on(Code code, std::vector<PassedOver> passed) {
    code_ = std::move(code);
    passed_ = std::move(passed);
  }
  std::string stats() const;
  void trim();

  const Model& model() const { return model_; }

 private:
  wherry_engine* engine() const { return core_.engine(); }
  void hear();

  TextInterface text_interface_;
  Model model_;
  EngineCore core_;
  Code code_;
  std::vector<PassedOver> passed_;
  Grammars grammars_;
  Requests requests_;
  std::unique_ptr<Thread> planner_, listener_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_APP_H_
