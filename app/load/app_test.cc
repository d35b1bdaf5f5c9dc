// Tests that requests whose grammars are being compiled do not delay other requests.
#include "app/load/app.h"

#include <random>
#include <thread>

#include "abi/c_api.h"
#include "app/testing/gated_grammars.h"
#include "app/value/json_text.h"
#include "testing/fake_model.h"

namespace {

using namespace wherry;
using namespace wherry::app;
using namespace wherry::testing;

// Collects what the app sends to one request's listener.
class Heard {
 public:
  Listener listener() {
    return [this](const std::string& json, bool last) {
      const std::lock_guard lock(mutex_);
      ++chunks_;
      if (!last) return;
      ++ends_;
      last_ = json;
      changed_.notify_all();
    };
  }

  // Returns how the request ended: "stop", "length", or an error's code.
  std::string end() {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, kPatience, [&] { return ends_ > 0; }));
    CHECK_EQ(ends_, 1);
    const Fields fields(json::from_json(last_));
    if (const Value* error = fields.find("error")) return Fields(*error).text("code");
    return Fields(fields.find("choices")->items()[0]).text("finish_reason");
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ends_ > 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int chunks_ = 0, ends_ = 0;
  std::string last_;
};

std::unique_ptr<App> app_at(Gate& gate) {
  FakeOptions options;
  options.vocab = kGatedTokens;
  ModelPtr model(new wherry_model{std::make_shared<FakeModel>(options)});
  wherry_engine* engine = nullptr;
  CHECK_EQ(wherry_engine_create(model.get(), nullptr, R"({"max_batch": 4})", &engine), WHERRY_OK);
  TextInterface text_interface;
  text_interface.tokenizer = byte_tokenizer();
  text_interface.defaults = json::make_dict({});
  return std::make_unique<App>("fake", std::move(text_interface), std::move(model),
                               EnginePtr(engine), options.context, options.vocab,
                               compiler_at(gate));
}

struct Running {
  Gate gate;
  std::unique_ptr<App> app = app_at(gate);

  int64_t start(Heard& heard, const std::string& grammar = "") {
    const std::string constraint =
        grammar.empty() ? "" : R"("guided_choice": [")" + grammar + "\"], ";
    return app->start(
        "{" + constraint + R"("prompt": [5, 6, 7], "max_tokens": 40, "stream": true})",
        heard.listener());
  }
};

TEST(others_go_on_while_a_grammar_is_compiled) {
  Heard first, slow, free, known;
  Running running;
  running.start(first, "known");
  CHECK_EQ(first.end(), "stop");
  running.start(slow, "slow");
  running.gate.begun(2);
  running.start(free);
  CHECK_EQ(free.end(), "length");
  running.start(known, "known");
  CHECK_EQ(known.end(), "stop");
  CHECK(!slow.ended());
  running.gate.open();
  CHECK_EQ(slow.end(), "stop");
}

TEST(who_waits_for_a_grammar_is_aborted_at_once) {
  Heard first, second, third, fourth;
  Running running;
  const int64_t one = running.start(first, "slow"), two = running.start(second, "slow");
  const int64_t three = running.start(third, "never");
  running.gate.begun(1);
  for (auto [id, heard] : {std::pair(three, &third), std::pair(one, &first)}) {
    CHECK(running.app->abort(id));
    CHECK_EQ(heard->end(), "aborted");
  }
  CHECK(!second.ended());
  CHECK(running.app->abort(two));
  CHECK_EQ(second.end(), "aborted");
  running.start(fourth, "quick");
  CHECK_EQ(fourth.end(), "stop");
  CHECK_EQ(running.gate.given_up(), 1u);
  CHECK_EQ(running.gate.begun(2).size(), 2u);
}

TEST(an_error_ends_its_request_alone) {
  Heard bad, good;
  Running running;
  running.start(bad, "bad");
  running.start(good, "good");
  CHECK_EQ(bad.end(), "invalid_grammar");
  CHECK_EQ(good.end(), "stop");
}

TEST(closing_ends_those_who_wait_for_grammars) {
  Heard heard[4];
  Running running;
  for (size_t i = 0; i < 4; ++i)
    running.start(heard[i], i < 3 ? "slow" + std::to_string(i / 2) : "");
  running.gate.begun(1);
  running.app.reset();
  for (size_t i = 0; i < 3; ++i) CHECK_EQ(heard[i].end(), "aborted");
  CHECK(heard[3].ended());
  CHECK_EQ(FakeMask::alive.load(), 0);
}

// Requests are aborted, and the app is closed, at any moment: each request must get its end once,
// and all masks must be released.
TEST(aborts_at_any_time) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 8; ++round) {
    std::vector<Heard> heard(24);
    Running running;
    if (round % 2 == 0) running.gate.open();
    const char* const kWords[] = {"", "slow", "a", "bad", "slow2", "b"};
    std::vector<int64_t> ids;
    for (Heard& one : heard) ids.push_back(running.start(one, kWords[random() % 6]));
    std::thread other([&, order = random()] {
      for (size_t i = 0; i < ids.size(); ++i) {
        if ((order >> i % 64 & 1) != 0) running.app->abort(ids[i]);
        if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    if (round % 4 == 1) running.gate.open();
    other.join();
    running.app.reset();
    for (Heard& one : heard) CHECK(!one.end().empty());
    CHECK_EQ(FakeMask::alive.load(), 0);
  }
}

}  // namespace
