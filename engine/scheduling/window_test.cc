// Tests sliding windows in KV caches that are shorter than a sequence.
#include <map>

#include "scheduling/engine.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

constexpr int kContext = 64;

FakeOptions windowed(int64_t window) {
  FakeOptions options;
  options.window = window;
  options.window_alone = true;
  return options;
}

std::vector<int32_t> prompt_of(int length, int first) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back((first + 7 * i) % 64);
  return prompt;
}

wherry_params greedy(int max_tokens) {
  wherry_params params;
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

// Checks the tokens of concurrent requests; sizes: prompt and output tokens of each request.
void check_tokens(const FakeOptions& options, const std::string& config,
                  const std::vector<std::pair<int, int>>& sizes) {
  auto model = std::make_shared<FakeModel>(options);
  Engine engine(model, parse_engine_config(config.c_str(), model->metadata()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto prompt = prompt_of(sizes[i].first, static_cast<int>(3 * i));
    engine.add(i, prompt.data(), prompt.size(), greedy(sizes[i].second));
  }
  std::map<uint64_t, std::vector<int32_t>> tokens;
  for (int steps = 0; engine.stats().finished < sizes.size(); ++steps) {
    CHECK(steps < 1000);  // the engine must advance
    std::vector<wherry_event> events(64);
    std::string error;
    size_t n = engine.step(events.data(), events.size(), &error);
    CHECK(error.empty());
    // No step is wasted; the engine's own thread would sleep now.
    CHECK_EQ(engine.stats().steps, static_cast<uint64_t>(steps) + 1);
    for (size_t e = 0; e < n; ++e) tokens[events[e].id].push_back(events[e].token);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto prompt = prompt_of(sizes[i].first, static_cast<int>(3 * i));
    CHECK(tokens[i] == fake_output(options, prompt, greedy(sizes[i].second), kContext));
  }
  CHECK_EQ(engine.stats().pages_free, engine.stats().pages_total);
}

const char* const kCaches[] = {"true", "false"};

TEST(a_sequence_longer_than_the_cache_goes_on) {
  for (const char* prefixes : kCaches) {
    std::string rest = concat(R"(, "context": 64, "prefix_cache": )", prefixes, "}");
    for (int64_t window : {2, 4, 5, 9}) {
      check_tokens(windowed(window), concat(R"({"max_batch": 1, "kv_tokens": 16)", rest),
                   {{5, 50}, {6, 30}});
      check_tokens(windowed(window), concat(R"({"max_batch": 3, "kv_tokens": 20)", rest),
                   {{5, 50}, {9, 40}, {3, 44}, {1, 12}});
    }
  }
}

TEST(so_does_a_prompt_longer_than_the_cache) {
  for (const char* prefixes : kCaches) {
    std::string rest = concat(R"(, "context": 64, "prefix_cache": )", prefixes, "}");
    for (int64_t window : {2, 4, 5, 9}) {
      check_tokens(windowed(window), concat(R"({"max_batch": 2, "kv_tokens": 16)", rest),
                   {{50, 5}, {41, 20}, {50, 6}});
    }
  }
}

TEST(a_long_prompt_does_not_wait_until_the_others_are_done) {
  auto model = std::make_shared<FakeModel>(windowed(9));
  // The cache has 20 pages, twice the pages of two sequences.
  Engine engine(model,
                parse_engine_config(R"({"max_batch": 2, "prefill_chunk": 4})", model->metadata()));
  CHECK_EQ(engine.stats().pages_total, 20);
  auto add = [&](uint64_t id, int length, int more) {
    auto prompt = prompt_of(length, static_cast<int>(id));
    engine.add(id, prompt.data(), prompt.size(), greedy(more));
  };
  std::vector<wherry_event> events(64);
  std::string error;
  add(1, 30, 30);
  for (int i = 0; i < 12; ++i) engine.step(events.data(), events.size(), &error);
  CHECK_EQ(engine.stats().running, 1);
  add(2, 60, 2);
  engine.step(events.data(), events.size(), &error);
  CHECK_EQ(engine.stats().waiting, 0);
}

TEST(a_cache_shorter_than_the_window_is_an_error_at_once) {
  auto model = std::make_shared<FakeModel>(windowed(30));
  Engine engine(model, parse_engine_config(R"({"max_batch": 1, "kv_tokens": 16, "context": 64})",
                                           model->metadata()));
  auto add = [&](int length, int more) {
    auto prompt = prompt_of(length, 1);
    engine.add(1, prompt.data(), prompt.size(), greedy(more));
  };
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, add(10, 20)), "take 8 pages");
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, add(50, 1)), "take 9 pages");
  add(10, 7);  // the request occupies 16 tokens of the cache
  CHECK_EQ(engine.stats().waiting, 1);
}

}  // namespace
}  // namespace wherry
