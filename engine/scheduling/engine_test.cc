#include "scheduling/engine.h"

#include <map>
#include <set>

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

wherry_params sampled(int max_tokens, uint64_t seed) {
  wherry_params params = greedy(max_tokens);
  params.temperature = 1.5f;
  params.top_p = 0.9f;
  params.seed = seed;
  return params;
}

std::vector<int32_t> prompt_of(int length, int first) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back((first + 7 * i) % 64);
  return prompt;
}

// Collects one request's events: its tokens, log-probabilities and finish reason.
struct Result {
  std::vector<int32_t> tokens;
  int finish = WHERRY_RUNNING;
  std::string error;
};

// Runs an engine with a fake model, one manual step at a time.
struct Bench {
  explicit Bench(const char* config, FakeOptions given = {})
      : options(given),
        model(std::make_shared<FakeModel>(options)),
        engine(model, parse_engine_config(config, model->metadata())) {}

  void add(uint64_t id, const std::vector<int32_t>& prompt, const wherry_params& params) {
    engine.add(id, prompt.data(), prompt.size(), params);
  }

  size_t step(size_t cap = 64) {
    std::vector<wherry_event> events(cap);
    std::string error;
    size_t n = engine.step(events.data(), cap, &error);
    for (size_t i = 0; i < n; ++i) {
      Result& result = results[events[i].id];
      CHECK_EQ(result.finish, WHERRY_RUNNING);  // no event may follow a request's last event
      result.finish = events[i].finish;
      if (events[i].token >= 0) result.tokens.push_back(events[i].token);
      if (events[i].finish == WHERRY_ERROR) result.error = error;
    }
    return n;
  }

  bool busy() const {
    wherry_stats stats = engine.stats();
    return stats.waiting + stats.prefilling + stats.running > 0;
  }

  void run() {
    for (int steps = 0; busy(); ++steps) {
      CHECK(steps < 10000);
      step();
    }
    while (step() > 0) {
    }
    CHECK_EQ(engine.stats().pages_free, engine.stats().pages_total);
  }

  std::vector<int32_t> expected(const std::vector<int32_t>& prompt, const wherry_params& params,
                                int64_t context) const {
    return fake_output(options, prompt, params, context);
  }

  FakeOptions options;
  std::shared_ptr<FakeModel> model;
  Engine engine;
  std::map<uint64_t, Result> results;
};

TEST(greedy_tokens_are_the_models) {
  Bench bench("{}");
  bench.add(1, {3, 1, 4, 1, 5}, greedy(12));
  bench.run();
  CHECK(bench.results[1].tokens == bench.expected({3, 1, 4, 1, 5}, greedy(12), 64));
  CHECK_EQ(bench.results[1].tokens.size(), 12u);
  CHECK_EQ(bench.results[1].finish, WHERRY_LENGTH);
}

TEST(requests_join_and_leave_at_every_step) {
  Bench bench(R"({"max_batch": 4, "prefill_chunk": 8})");
  std::map<uint64_t, std::pair<std::vector<int32_t>, wherry_params>> given;
  for (uint64_t id = 0; id < 20; ++id) {
    auto prompt = prompt_of(1 + static_cast<int>(id * 5 % 23), static_cast<int>(id));
    wherry_params params = sampled(1 + static_cast<int>(id % 7), id);
    bench.add(id, prompt, params);
    given[id] = {prompt, params};
    bench.step();
  }
  bench.run();
  for (const auto& [id, request] : given) {
    CHECK(bench.results[id].tokens == bench.expected(request.first, request.second, 64));
    CHECK_EQ(bench.results[id].finish, WHERRY_LENGTH);
  }
}

TEST(chunks_do_not_change_tokens) {
  for (int chunk : {1, 2, 3, 5, 8, 16, 17, 64}) {
    Bench bench(concat(R"({"max_batch": 1, "prefill_chunk": )", chunk, "}").c_str());
    auto prompt = prompt_of(17, 2);
    bench.add(1, prompt, sampled(6, 9));
    size_t steps = 0;
    while (bench.results[1].tokens.empty()) {
      bench.step();
      ++steps;
    }
    // The step of the last prefill chunk samples the first token.
    CHECK_EQ(steps, static_cast<size_t>((17 + chunk - 1) / chunk));
    bench.run();
    CHECK(bench.results[1].tokens == bench.expected(prompt, sampled(6, 9), 64));
    CHECK_EQ(bench.engine.stats().prefill_tokens, 17u);
    CHECK_EQ(bench.engine.stats().decode_tokens, 6u);
  }
}

TEST(decode_rows_come_first_and_share_the_step_with_prompts) {
  Bench bench(R"({"max_batch": 3, "prefill_chunk": 6, "max_slowdown": 100})");
  std::vector<std::vector<int32_t>> shapes;  // rows of each sequence in each step
  bench.model->on_launch = [&](const Batch& batch) {
    std::vector<int32_t> rows;
    for (size_t s = 0; s + 1 < batch.query_indptr.size(); ++s) {
      rows.push_back(batch.query_indptr[s + 1] - batch.query_indptr[s]);
    }
    shapes.push_back(rows);
  };
  bench.add(1, prompt_of(3, 1), greedy(8));
  bench.add(2, prompt_of(9, 2), greedy(8));
  bench.add(3, prompt_of(4, 3), greedy(8));
  bench.run();
  const std::vector<std::vector<int32_t>> first = {{3, 3}, {1, 5}, {1, 1, 4}, {1, 1, 1}};
  CHECK(std::vector<std::vector<int32_t>>(shapes.begin(), shapes.begin() + 4) == first);
  CHECK(bench.results[2].tokens == bench.expected(prompt_of(9, 2), greedy(8), 64));
}

TEST(a_batch_does_not_change_a_sampled_request) {
  wherry_params params = sampled(10, 42);
  Bench alone(R"({"max_batch": 8, "prefill_chunk": 16})");
  alone.add(5, prompt_of(11, 5), params);
  alone.run();
  Bench crowd(R"({"max_batch": 8, "prefill_chunk": 16})");
  for (uint64_t id = 0; id < 5; ++id) crowd.add(id, prompt_of(13, 9), sampled(9, id));
  crowd.step();
  crowd.add(5, prompt_of(11, 5), params);
  crowd.add(6, prompt_of(11, 5), sampled(10, 43));
  crowd.run();
  CHECK(crowd.results[5].tokens == alone.results[5].tokens);
  CHECK(crowd.results[6].tokens != alone.results[5].tokens);
}

TEST(a_stop_id_ends_and_is_reported) {
  Bench bench("{}");
  auto all = bench.expected({9, 8}, greedy(20), 64);
  const int32_t stop[] = {all[4], 60};
  size_t first = 0;
  while (all[first] != stop[0] && all[first] != stop[1]) ++first;
  wherry_params params = greedy(20);
  params.stop_ids = stop;
  params.n_stop_ids = 2;
  bench.add(1, {9, 8}, params);
  bench.run();
  CHECK_EQ(bench.results[1].finish, WHERRY_STOP);
  CHECK_EQ(bench.results[1].tokens.size(), first + 1);
  CHECK_EQ(bench.results[1].tokens.back(), all[first]);
}

TEST(the_context_ends_a_request) {
  Bench bench(R"({"context": 20})");
  bench.add(1, prompt_of(13, 1), greedy(0));
  bench.add(2, prompt_of(19, 1), greedy(50));
  bench.run();
  CHECK_EQ(bench.results[1].tokens.size(), 7u);
  CHECK_EQ(bench.results[1].finish, WHERRY_LENGTH);
  CHECK_EQ(bench.results[2].tokens.size(), 1u);
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(3, prompt_of(20, 1), greedy(1))),
                 "context is 20");
}

TEST(a_prompt_that_is_embedded_may_fill_the_context) {
  FakeOptions options;
  options.embeds = true;
  Bench bench(R"({"context": 20, "kv_tokens": 32, "prefill_chunk": 8})", options);
  wherry_params params = greedy(1);
  params.embed = 1;
  bench.add(1, prompt_of(20, 3), params);
  bench.run();
  CHECK_EQ(bench.results[1].finish, WHERRY_DONE);
  std::string refusal = ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(2, prompt_of(21, 3), params));
  CHECK_CONTAINS(refusal, "the prompt has 21 tokens; the context is 20");
}

TEST(a_full_cache_makes_requests_wait) {
  // A KV cache of 6 pages of 4 tokens; each request takes 3 pages.
  Bench bench(R"({"max_batch": 8, "kv_tokens": 24, "context": 24})");
  for (uint64_t id = 0; id < 6; ++id) {
    bench.add(id, prompt_of(8, static_cast<int>(id)), greedy(5));
  }
  bench.step();
  wherry_stats stats = bench.engine.stats();
  CHECK_EQ(stats.running, 2);
  CHECK_EQ(stats.waiting, 4);
  bench.run();
  for (uint64_t id = 0; id < 6; ++id) {
    CHECK(bench.results[id].tokens ==
          bench.expected(prompt_of(8, static_cast<int>(id)), greedy(5), 24));
  }
}

TEST(chats_that_name_no_limit_run_together) {
  FakeOptions options;
  options.context = 131072;
  options.page_size = 16;
  Bench bench(R"({"max_batch": 16, "kv_tokens": 200000})", options);
  for (uint64_t id = 0; id < 16; ++id) {
    bench.add(id, prompt_of(100, static_cast<int>(id)), greedy(0));
  }
  for (int steps = 0; bench.engine.stats().running < 16; ++steps) {
    CHECK(steps < 2000);
    bench.step();
  }
  CHECK_EQ(bench.engine.stats().preemptions, 0u);
  for (uint64_t id = 0; id < 16; ++id) bench.engine.abort(id);
  bench.run();
}

TEST(what_can_never_fit_is_refused_with_the_numbers) {
  Bench bench(R"({"kv_tokens": 24, "context": 60})");
  std::string text = ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, prompt_of(20, 1), greedy(30)));
  CHECK_CONTAINS(text, "20 tokens and 30 of output take 13 pages of the cache, which has 6");
  // The id is free again; the last token of the first request was not stored.
  bench.add(1, prompt_of(20, 1), greedy(5));
  bench.run();
  CHECK_EQ(bench.results[1].tokens.size(), 5u);
}

TEST(abort_in_every_state) {
  Bench bench(R"({"max_batch": 2, "prefill_chunk": 4})");
  bench.add(1, prompt_of(2, 1), greedy(30));   // request 1 runs after the first step
  bench.add(2, prompt_of(30, 2), greedy(30));  // request 2 prefills for many steps
  bench.add(3, prompt_of(2, 3), greedy(30));   // request 3 waits
  bench.step();
  CHECK_EQ(bench.engine.stats().running, 1);
  CHECK_EQ(bench.engine.stats().prefilling, 1);
  CHECK_EQ(bench.engine.stats().waiting, 1);
  for (uint64_t id : {3, 2, 1}) bench.engine.abort(id);
  CHECK_EQ(bench.engine.stats().pages_free, bench.engine.stats().pages_total);
  bench.run();
  for (uint64_t id : {1, 2, 3}) CHECK_EQ(bench.results[id].finish, WHERRY_ABORTED);
  CHECK_CONTAINS(ERROR_OF(WHERRY_NOT_FOUND, bench.engine.abort(1)), "no request 1");
}

TEST(abort_during_a_step_keeps_its_pages_until_it_is_over) {
  Bench bench("{}");
  bench.add(1, prompt_of(5, 1), greedy(30));
  bench.add(2, prompt_of(5, 2), greedy(4));
  bench.engine.launch();
  bench.engine.abort(1);
  CHECK_EQ(bench.engine.stats().pages_total - bench.engine.stats().pages_free, 4);
  wherry_event events[4];
  std::string error;
  CHECK_EQ(bench.engine.collect(events, 4, &error), 2u);
  CHECK_EQ(events[0].id, 1u);
  CHECK_EQ(events[0].finish, WHERRY_ABORTED);
  CHECK_EQ(events[0].token, -1);
  CHECK_EQ(bench.engine.stats().pages_total - bench.engine.stats().pages_free, 2);
  bench.results[2].tokens.push_back(events[1].token);
  bench.run();
  CHECK(bench.results[2].tokens == bench.expected(prompt_of(5, 2), greedy(4), 64));
}

TEST(an_error_in_the_model_ends_its_batch_alone) {
  Bench bench(R"({"max_batch": 2})");
  for (int id = 1; id <= 3; ++id) bench.add(static_cast<uint64_t>(id), prompt_of(6, id), greedy(5));
  bench.step();
  bench.model->on_launch = [](const Batch&) { throw std::runtime_error("the device is on fire"); };
  bench.step();
  bench.model->on_launch = nullptr;
  for (uint64_t id : {1, 2}) {
    CHECK_EQ(bench.results[id].finish, WHERRY_ERROR);
    CHECK_CONTAINS(bench.results[id].error, "the device is on fire");
    CHECK_EQ(bench.results[id].tokens.size(), 1u);
  }
  CHECK_EQ(bench.engine.stats().pages_free, bench.engine.stats().pages_total);
  CHECK_EQ(bench.engine.stats().failed_steps, 1u);
  bench.run();  // the failure must not affect the waiting request
  CHECK_EQ(bench.engine.stats().failed_steps, 0u);
  CHECK(bench.results[3].tokens == bench.expected(prompt_of(6, 3), greedy(5), 64));
}

TEST(nan_ends_one_request) {
  Bench bench("{}");
  bench.model->on_logits = [](float* row, int64_t tokens) {
    if (tokens == 9) row[63] = 0.0f / 0.0f;
  };
  bench.add(1, prompt_of(7, 1), greedy(6));
  bench.add(2, prompt_of(20, 1), greedy(6));
  bench.run();
  CHECK_EQ(bench.results[1].finish, WHERRY_ERROR);
  CHECK_EQ(bench.results[1].tokens.size(), 2u);
  CHECK_CONTAINS(bench.results[1].error, "NaN");
  CHECK_EQ(bench.results[2].finish, WHERRY_LENGTH);
}

TEST(events_beyond_cap_stay_queued) {
  Bench bench("{}");
  for (uint64_t id = 0; id < 5; ++id) bench.add(id, prompt_of(3, 1), greedy(1));
  CHECK_EQ(bench.step(2), 2u);
  wherry_event events[8];
  std::string error;
  CHECK_EQ(bench.engine.collect(events, 8, &error), 3u);
  CHECK_EQ(events[0].id, 2u);
  CHECK_EQ(bench.engine.collect(events, 8, &error), 0u);
}

TEST(steps_out_of_order_are_refused) {
  Bench bench("{}");
  bench.add(1, {1}, greedy(3));
  bench.engine.launch();
  ERROR_OF(WHERRY_BUSY, bench.engine.launch());
  ERROR_OF(WHERRY_BUSY, bench.engine.reset());
  ERROR_OF(WHERRY_BUSY, bench.engine.start());
  wherry_event event;
  std::string error;
  CHECK_EQ(bench.engine.collect(&event, 1, &error), 1u);
  bench.engine.start();
  ERROR_OF(WHERRY_BUSY, bench.engine.launch());
  ERROR_OF(WHERRY_BUSY, bench.engine.start());
  bench.engine.stop();
  bench.engine.stop();  // a second stop is not an error
  bench.run();
}

TEST(wrong_requests_are_refused) {
  Bench bench("{}");
  ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, {}, greedy(1)));
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, {3, 64}, greedy(1))),
                 "token 1 of the prompt is 64; accepted are 0..63");
  ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, {-1}, greedy(1)));
  bench.add(1, {3}, greedy(1));
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, {3}, greedy(1))), "request 1");
}

TEST(sources_must_fit_and_draft_models_read_none) {
  FakeOptions options;
  options.encoder = true;
  Bench bench("{}", options);
  const std::vector<int32_t> source = prompt_of(65, 1);
  wherry_params params = greedy(3);
  params.source = source.data();
  params.n_source = source.size();
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, bench.add(1, {3}, params)),
                 "the source has 65 tokens; the context is 64");
  params.n_source = 64;
  bench.add(1, {3}, params);
  bench.run();
  CHECK_EQ(bench.results[1].tokens.size(), 3u);
  const EngineConfig config = parse_engine_config("{}", bench.model->metadata());
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INVALID_ARGUMENT, Engine(std::make_shared<FakeModel>(), bench.model, config)),
      "is an encoder-decoder");
}

TEST(reset_aborts_and_clears) {
  Bench bench(R"({"max_batch": 1})");
  bench.add(1, prompt_of(5, 1), greedy(9));
  bench.add(2, prompt_of(5, 1), greedy(9));
  bench.step();
  bench.engine.reset();
  wherry_stats stats = bench.engine.stats();
  CHECK_EQ(stats.steps, 0u);
  CHECK_EQ(stats.finished, 0u);
  CHECK_EQ(stats.pages_free, stats.pages_total);
  bench.run();
  CHECK_EQ(bench.results[1].finish, WHERRY_ABORTED);
  CHECK_EQ(bench.results[2].finish, WHERRY_ABORTED);
  bench.add(1, prompt_of(5, 1), greedy(9));
}

}  // namespace
}  // namespace wherry
