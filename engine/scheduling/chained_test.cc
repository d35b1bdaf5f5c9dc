// Tests launch-ahead (the next step starts before this one is sampled), step by step.
#include <map>

#include "scheduling/engine.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

wherry_params greedy(int max_tokens) {
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

FakeOptions chaining() {
  FakeOptions options;
  options.candidates = 40;
  options.asynchronous = options.chains = true;
  return options;
}

struct Bench {
  explicit Bench(const char* config = "{}", FakeOptions given = chaining())
      : options(given),
        model(std::make_shared<FakeModel>(given)),
        engine(model, parse_engine_config(config, model->metadata())) {
    model->on_launch = [this](const Batch&) {
      if (++launches == failing) throw Error(WHERRY_INTERNAL, "the device is lost");
    };
  }

  void add(uint64_t id, const wherry_params& params) {
    engine.add(id, prompt.data(), prompt.size(), params);
  }
  void collect() {
    wherry_event events[64];
    std::string error;
    size_t n = engine.collect(events, 64, &error);
    for (size_t i = 0; i < n; ++i) {
      if (events[i].token >= 0) tokens[events[i].id].push_back(events[i].token);
      finish[events[i].id] = events[i].finish;
    }
  }
  void step() {
    engine.launch();
    collect();
  }
  bool busy() const {
    wherry_stats stats = engine.stats();
    return stats.waiting + stats.prefilling + stats.running > 0;
  }
  void run() {
    for (int i = 0; busy(); ++i) {
      CHECK(i < 1000);
      step();
    }
    collect();
    CHECK_EQ(engine.stats().pages_free, engine.stats().pages_total);
  }
  std::vector<int32_t> expected(const wherry_params& params) const {
    return fake_output(options, prompt, params, options.context);
  }

  const std::vector<int32_t> prompt{3, 1, 4};
  FakeOptions options;
  std::shared_ptr<FakeModel> model;
  Engine engine;
  int launches = 0, failing = 0;
  std::map<uint64_t, std::vector<int32_t>> tokens;
  std::map<uint64_t, int> finish;
};

TEST(the_next_step_is_launched_before_this_one_is_read) {
  Bench bench;
  bench.add(1, greedy(10));
  bench.engine.launch();
  CHECK_EQ(bench.launches, 2);
  bench.collect();
  CHECK_EQ(bench.tokens[1].size(), 1u);
  bench.engine.launch();
  CHECK_EQ(bench.launches, 3);
  bench.collect();
  bench.run();
  CHECK(bench.tokens[1] == bench.expected(greedy(10)));
  CHECK_EQ(bench.launches, 10);  // launch-ahead starts no step after the last token's
  CHECK_EQ(bench.engine.stats().chained_steps, 9u);
  CHECK_EQ(bench.engine.stats().wasted_rows, 0u);
  CHECK_EQ(bench.engine.stats().steps, 10u);
}

TEST(a_stop_token_wastes_one_row) {
  Bench bench;
  std::vector<int32_t> tokens = bench.expected(greedy(20));
  wherry_params params = greedy(20);
  params.stop_ids = &tokens[4];
  params.n_stop_ids = 1;
  bench.add(1, params);
  bench.add(2, greedy(20));
  bench.run();
  CHECK(bench.tokens[1] == bench.expected(params));
  CHECK_EQ(bench.finish[1], WHERRY_STOP);
  CHECK(bench.tokens[2] == tokens);
  CHECK_EQ(bench.engine.stats().wasted_rows, 1u);
}

TEST(a_token_that_was_another_is_computed_again) {
  FakeOptions options = chaining();
  options.wrong_choices = 0.3;
  Bench bench("{}", options);
  bench.add(1, greedy(40));
  bench.add(2, greedy(25));
  bench.run();
  CHECK(bench.tokens[1] == bench.expected(greedy(40)));
  CHECK(bench.tokens[2] == bench.expected(greedy(25)));
  CHECK(bench.engine.stats().wasted_rows > 5);
}

TEST(an_abort_or_a_reset_between_two_steps) {
  Bench bench;
  bench.add(1, greedy(30));
  bench.add(2, greedy(9));
  bench.step();
  bench.step();
  bench.engine.abort(1);
  CHECK_EQ(bench.engine.stats().running, 1);
  bench.run();
  CHECK_EQ(bench.finish[1], WHERRY_ABORTED);
  CHECK_EQ(bench.tokens[1].size(), 2u);
  CHECK(bench.tokens[2] == bench.expected(greedy(9)));
  bench.add(3, greedy(30));
  bench.step();
  bench.engine.reset();
  bench.collect();
  CHECK_EQ(bench.finish[3], WHERRY_ABORTED);
  CHECK_EQ(bench.engine.stats().pages_free, bench.engine.stats().pages_total);
  bench.tokens.clear();
  bench.add(3, greedy(30));
  bench.run();
  CHECK(bench.tokens[3] == bench.expected(greedy(30)));
}

TEST(an_abort_while_both_are_in_flight) {
  Bench bench;
  bench.add(1, greedy(30));
  bench.engine.launch();
  bench.engine.abort(1);
  bench.collect();
  CHECK_EQ(bench.finish[1], WHERRY_ABORTED);
  CHECK(!bench.busy());
  CHECK_EQ(bench.engine.stats().pages_free, bench.engine.stats().pages_total);
  bench.add(2, greedy(12));
  bench.run();
  CHECK(bench.tokens[2] == bench.expected(greedy(12)));
}

TEST(a_step_that_cannot_be_launched_ends_its_requests_when_its_turn_comes) {
  Bench bench;
  bench.failing = 4;
  bench.add(1, greedy(30));
  bench.run();
  CHECK_EQ(bench.finish[1], WHERRY_ERROR);
  std::vector<int32_t> expected = bench.expected(greedy(30));
  expected.resize(3);
  CHECK(bench.tokens[1] == expected);
  bench.add(2, greedy(12));
  bench.run();
  CHECK(bench.tokens[2] == bench.expected(greedy(12)));
}

TEST(requests_whose_token_only_the_host_finds_are_waited_for) {
  Bench bench;
  wherry_params penalised = greedy(12), sampled = greedy(12);
  penalised.repetition_penalty = 1.5f;
  sampled.temperature = 1;
  for (const wherry_params& params : {penalised, sampled}) {
    bench.add(1, params);
    bench.tokens.clear();
    bench.run();
    CHECK(bench.tokens[1] == bench.expected(params));
  }
  CHECK_EQ(bench.engine.stats().chained_steps, 0u);
}

TEST(a_device_draws_with_the_requests_own_numbers) {
  FakeOptions options = chaining();
  options.draws = true;
  options.sharpness = 4;
  Bench bench("{}", options);
  wherry_params sampled = greedy(40), cut = greedy(40);
  sampled.temperature = 0.7f;
  sampled.seed = 5;
  cut.temperature = 1.2f;
  cut.top_p = 0.6f;
  cut.top_k = 30;
  bench.add(1, sampled);
  bench.add(2, cut);
  bench.run();
  CHECK(bench.tokens[1] == bench.expected(sampled));
  CHECK(bench.tokens[2] == bench.expected(cut));
  CHECK(bench.engine.stats().chained_steps > 30);
  CHECK(bench.engine.stats().wasted_rows < 5);
}

TEST(who_comes_meanwhile_gets_the_step_after_the_next) {
  Bench bench(R"({"max_batch": 2, "max_slowdown": 1000})");
  bench.add(1, greedy(40));
  bench.step();
  bench.add(2, greedy(5));
  bench.step();  // runs the step that was launched ahead
  bench.step();
  CHECK_EQ(bench.tokens[2].size(), 1u);
  wherry_params urgent = greedy(3);
  urgent.priority = 1;
  bench.add(3, urgent);  // request 3 preempts the second request
  bench.step();
  bench.step();
  CHECK_EQ(bench.tokens[3].size(), 1u);
  bench.run();
  for (uint64_t id : {1, 2, 3}) {
    int max_tokens = id == 1 ? 40 : id == 2 ? 5 : 3;
    CHECK(bench.tokens[id] == bench.expected(greedy(max_tokens)));
  }
}

}  // namespace
}  // namespace wherry
