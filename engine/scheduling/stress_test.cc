// Runs the engine's own thread with several threads that add, abort, wait, wake and reset.
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "sampling/rng.h"
#include "scheduling/engine.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

wherry_params sampled(int max_tokens, uint64_t seed) {
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 1.2f;
  params.top_k = 20;
  params.seed = seed;
  params.max_tokens = max_tokens;
  return params;
}

std::vector<int32_t> prompt_of(uint64_t id) {
  return std::vector<int32_t>(1 + id % 19, static_cast<int32_t>(id % 64));
}

// Collects the events of all requests in its own thread until each request has ended.
class Collector {
 public:
  Collector(Engine& engine, size_t requests) : engine_(engine), left_(requests) {
    thread_ = std::thread([this] { run(); });
  }
  ~Collector() {
    if (thread_.joinable()) join();
  }
  void join() { thread_.join(); }

  std::map<uint64_t, std::vector<int32_t>> tokens;
  std::map<uint64_t, int> finish;
  bool timed_out = false;

 private:
  void run() {
    wherry_event events[7];
    std::string error;
    while (left_ > 0 && !timed_out) {
      size_t n = engine_.wait(events, 7, 20000, &error);
      timed_out = n == 0;
      for (size_t i = 0; i < n; ++i) {
        if (events[i].token >= 0) tokens[events[i].id].push_back(events[i].token);
        if (events[i].finish == WHERRY_RUNNING) continue;
        finish[events[i].id] = events[i].finish;
        --left_;
      }
    }
  }

  Engine& engine_;
  size_t left_;
  std::thread thread_;
};

struct Bench {
  explicit Bench(const char* config, FakeOptions given = {})
      : options(given),
        model(std::make_shared<FakeModel>(given)),
        engine(model, parse_engine_config(config, model->metadata())) {}
  FakeOptions options;
  std::shared_ptr<FakeModel> model;
  Engine engine;
};

void add_and_abort(const FakeOptions& options, wherry_params (*params_of)(int, uint64_t)) {
  constexpr uint64_t kThreads = 4, kEach = 150;
  Bench bench(R"({"max_batch": 6, "prefill_chunk": 16, "kv_tokens": 200})", options);
  Collector collector(bench.engine, kThreads * kEach);
  bench.engine.start();
  std::atomic<int> aborted{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        uint64_t id = t * kEach + i;
        auto prompt = prompt_of(id);
        bench.engine.add(id, prompt.data(), prompt.size(), params_of(1 + id % 9, id));
        if (splitmix64(1, id) % 3 != 0) continue;
        try {
          bench.engine.abort(id - splitmix64(2, id) % (i + 1));
          ++aborted;
        } catch (const Error&) {  // the request had already ended
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  collector.join();
  CHECK(!collector.timed_out);
  CHECK(aborted > 0);
  int ended_by_abort = 0;
  for (uint64_t id = 0; id < kThreads * kEach; ++id) {
    auto expected = fake_output(bench.options, prompt_of(id), params_of(1 + id % 9, id), 64);
    auto& tokens = collector.tokens[id];
    if (collector.finish[id] == WHERRY_ABORTED) {
      ++ended_by_abort;
      CHECK(tokens.size() <= expected.size());
      expected.resize(tokens.size());
    }
    CHECK(tokens == expected);
  }
  CHECK(ended_by_abort <= aborted);  // an abort may come twice, or while the last token is sampled
  wherry_stats stats = bench.engine.stats();
  CHECK_EQ(stats.finished, kThreads * kEach);
  CHECK_EQ(stats.pages_free, stats.pages_total);
  if (options.chains) CHECK(stats.chained_steps > 0);
}

TEST(threads_add_and_abort) { add_and_abort({}, sampled); }

wherry_params greedy(int max_tokens, uint64_t seed) {
  static const int32_t stop_ids[] = {5, 17, 99, 230};
  wherry_params params = sampled(max_tokens, seed);
  params.temperature = 0;
  params.stop_ids = stop_ids;
  params.n_stop_ids = 4;
  return params;
}

FakeOptions chaining() {
  FakeOptions options;
  options.vocab = 400;
  options.candidates = 70;
  options.asynchronous = options.chains = true;
  options.wrong_choices = 0.05;
  return options;
}

TEST(threads_add_and_abort_beside_chained_steps) { add_and_abort(chaining(), greedy); }

void reset_start_and_stop(const FakeOptions& options, wherry_params (*params_of)(int, uint64_t)) {
  constexpr uint64_t kRequests = 200;
  Bench bench(R"({"max_batch": 6, "prefill_chunk": 16})", options);
  Collector collector(bench.engine, kRequests);
  bench.engine.start();
  std::thread adder([&] {
    for (uint64_t id = 0; id < kRequests; ++id) {
      auto prompt = prompt_of(id);
      bench.engine.add(id, prompt.data(), prompt.size(), params_of(5, id));
      if (id % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int i = 0; i < 10; ++i) {
    bench.engine.reset();
    bench.engine.stop();
    bench.engine.stats();
    bench.engine.start();
  }
  adder.join();
  collector.join();
  CHECK(!collector.timed_out);
  for (uint64_t id = 0; id < kRequests; ++id) {
    CHECK(collector.finish[id] == WHERRY_ABORTED || collector.finish[id] == WHERRY_LENGTH ||
          collector.finish[id] == WHERRY_STOP);
  }
  CHECK_EQ(bench.engine.stats().pages_free, bench.engine.stats().pages_total);
}

TEST(reset_start_and_stop_while_requests_come) { reset_start_and_stop({}, sampled); }
TEST(reset_start_and_stop_beside_chained_steps) { reset_start_and_stop(chaining(), greedy); }

TEST(an_abort_meets_a_step_that_blocks) {
  Bench bench("{}");
  std::atomic<bool> inside{false}, go{false};
  bench.model->on_launch = [&](const Batch&) {
    inside = true;
    while (!go) std::this_thread::yield();
  };
  Collector collector(bench.engine, 1);
  const int32_t prompt[] = {1, 2, 3};
  bench.engine.add(1, prompt, 3, sampled(50, 1));
  bench.engine.start();
  while (!inside) std::this_thread::yield();
  bench.engine.abort(1);
  CHECK(bench.engine.stats().pages_free < bench.engine.stats().pages_total);
  go = true;
  collector.join();
  CHECK_EQ(collector.finish[1], WHERRY_ABORTED);
  CHECK(collector.tokens[1].empty());
  CHECK_EQ(bench.engine.stats().pages_free, bench.engine.stats().pages_total);
}

TEST(wake_and_timeouts) {
  Bench bench("{}");
  wherry_event event;
  std::string error;
  auto seconds_of = [&](int timeout_ms) {
    auto start = std::chrono::steady_clock::now();
    CHECK_EQ(bench.engine.wait(&event, 1, timeout_ms, &error), 0u);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  CHECK(seconds_of(0) < 5);
  CHECK(seconds_of(30) >= 0.03);
  bench.engine.wake();  // wakes before any wait(): the wake must not be lost or count twice
  bench.engine.wake();
  CHECK(seconds_of(20000) < 10);
  CHECK(seconds_of(30) >= 0.03);
  std::thread waiter([&] { CHECK_EQ(bench.engine.wait(&event, 1, -1, &error), 0u); });
  bench.engine.wake();
  waiter.join();
}

TEST(destruction_releases_those_who_wait) {
  auto bench = std::make_unique<Bench>("{}");
  std::atomic<int> returned{0};
  std::vector<std::thread> waiters;
  std::atomic<int> ready{0};
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&, &engine = bench->engine] {
      wherry_event event;
      std::string error;
      ++ready;
      if (engine.wait(&event, 1, -1, &error) == 0) ++returned;
    });
  }
  while (ready < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  bench->engine.start();
  bench.reset();
  for (std::thread& waiter : waiters) waiter.join();
  CHECK_EQ(returned.load(), 3);
}

TEST(a_request_wakes_an_engine_that_had_nothing_to_do) {
  Bench bench("{}");
  wherry_event event;
  std::string error;
  CHECK_EQ(bench.engine.step(&event, 1, &error), 0u);
  bench.engine.start();
  const int32_t token = 1;
  bench.engine.add(1, &token, 1, sampled(1, 1));
  CHECK_EQ(bench.engine.wait(&event, 1, 20000, &error), 1u);
}

TEST(an_idle_thread_takes_no_time) {
  Bench bench("{}");
  bench.engine.start();
  std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 20);
  CHECK_EQ(bench.engine.stats().steps, 0u);
}

}  // namespace
}  // namespace wherry
