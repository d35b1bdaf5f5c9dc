#include "app/host/host_grammars.h"

#include <utility>

#include "app/request/request_error.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

class HostGrammar : public CompiledGrammar {
 public:
  explicit HostGrammar(const MaskMaker& maker) : maker_(maker) {}
  ~HostGrammar() override { maker_.release(maker_.context); }
  HostGrammar(const HostGrammar&) = delete;
  HostGrammar& operator=(const HostGrammar&) = delete;

  wherry_mask mask(const std::vector<int32_t>& stop_ids) const override {
    wherry_mask result{};
    result.size = sizeof result;
    if (maker_.mask(maker_.context, stop_ids.data(), stop_ids.size(), &result) != WHERRY_OK) {
      throw Error(WHERRY_INTERNAL, "the host made no mask of its grammar");
    }
    return result;
  }
  size_t bytes() const override { return 0; }

 private:
  const MaskMaker maker_;
};

// Returns the error that a host has written as JSON.
std::exception_ptr error_of(const std::string& json) {
  const json::Value error = *json::from_json(json).dict().find("error");
  const auto text = [&](const char* name) {
    const json::Value* match = error.dict().find(name);
    return match != nullptr && match->is_string() ? match->text() : std::string();
  };
  if (text("type") != "invalid_request_error") {
    return std::make_exception_ptr(Error(WHERRY_INTERNAL, text("message")));
  }
  return std::make_exception_ptr(RequestError(text("message"), text("param"), text("code")));
}

}  // namespace

void HostGrammars::compile(int64_t id, const Constraint& constraint, Done done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_[id] = std::move(done);
  }
  services_.constrain(id, constraint.ebnf);
}

bool HostGrammars::abandon(int64_t id) {
  const std::lock_guard lock(mutex_);
  return waiting_.erase(id) > 0;
}

void HostGrammars::constrained(int64_t id, const MaskMaker& maker, const std::string& error_json) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = waiting_.find(id);
    if (waiting != waiting_.end()) {
      done = std::move(waiting->second);
      waiting_.erase(waiting);
    }
  }
  if (!error_json.empty()) {
    if (done) done(nullptr, error_of(error_json));
  } else if (done) {
    done(std::make_shared<HostGrammar>(maker), nullptr);
  } else {
    maker.release(maker.context);
  }
}

}  // namespace wherry::app
