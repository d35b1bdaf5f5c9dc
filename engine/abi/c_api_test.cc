#include "abi/c_api.h"

#include <cstring>
#include <thread>

#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

std::string last_error() { return wherry_last_error(); }

struct Handles {
  explicit Handles(const char* config = "{}") : fake(std::make_shared<FakeModel>()), model{fake} {
    CHECK_EQ(wherry_engine_create(&model, nullptr, config, &engine), WHERRY_OK);
  }
  ~Handles() { wherry_engine_destroy(engine); }
  std::shared_ptr<FakeModel> fake;
  wherry_model model;
  wherry_engine* engine = nullptr;
};

wherry_params greedy(int max_tokens) {
  wherry_params params;
  std::memset(&params, 0xFF, sizeof params);
  wherry_params_init(&params);
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

TEST(a_request_from_start_to_end) {
  CHECK_EQ(wherry_abi_version(), WHERRY_ABI_VERSION);
  Handles h(R"({"max_batch": 2})");
  wherry_params params = greedy(3);
  params.top_logprobs = 2;
  const int32_t prompt[] = {5, 6, 7};
  CHECK_EQ(wherry_engine_add(h.engine, 9, prompt, 3, &params), WHERRY_OK);
  auto expected = fake_output({}, {5, 6, 7}, params, 64);
  wherry_event events[4];
  size_t n = 99;
  for (size_t i = 0; i < 3; ++i) {
    CHECK_EQ(wherry_engine_step(h.engine, events, 4, &n), WHERRY_OK);
    CHECK_EQ(n, 1u);
    CHECK_EQ(events[0].id, 9u);
    CHECK_EQ(events[0].token, expected[i]);
    CHECK_EQ(events[0].n_top, 2);
    CHECK_EQ(events[0].top_ids[0], expected[i]);
    CHECK_EQ(events[0].top_logprobs[0], events[0].logprob);
    CHECK(events[0].top_logprobs[1] < events[0].logprob);
    CHECK_EQ(events[0].finish, i == 2 ? WHERRY_LENGTH : WHERRY_RUNNING);
  }
  CHECK_EQ(wherry_engine_step(h.engine, events, 4, &n), WHERRY_OK);
  CHECK_EQ(n, 0u);
  wherry_stats stats{};
  stats.size = sizeof stats;
  CHECK_EQ(wherry_engine_stats(h.engine, &stats), WHERRY_OK);
  CHECK_EQ(stats.steps, 3u);
  CHECK_EQ(stats.prefill_tokens, 3u);
  CHECK_EQ(stats.decode_tokens, 3u);
  CHECK_EQ(stats.finished, 1u);
  CHECK_EQ(stats.page_size, 4);
  CHECK_EQ(stats.pages_total, 2 * 64 / 4);
}

TEST(null_arguments_are_refused) {
  Handles h;
  wherry_params params = greedy(1);
  wherry_event event;
  wherry_stats stats{};
  stats.size = sizeof stats;
  size_t n = 0;
  const int32_t token = 1;
  wherry_engine* engine = nullptr;
  wherry_model* model = nullptr;
  for (int status : {wherry_model_load(nullptr, "w", "cpu", nullptr, &model),
                     wherry_model_load("l", nullptr, "cpu", nullptr, &model),
                     wherry_model_load("l", "w", "cpu", nullptr, nullptr),
                     wherry_engine_create(nullptr, nullptr, "", &engine),
                     wherry_engine_create(&h.model, nullptr, "", nullptr),
                     wherry_engine_clear_cache(nullptr),
                     wherry_engine_add(nullptr, 1, &token, 1, &params),
                     wherry_engine_add(h.engine, 1, nullptr, 1, &params),
                     wherry_engine_add(h.engine, 1, &token, 1, nullptr),
                     wherry_engine_abort(nullptr, 1),
                     wherry_engine_reset(nullptr),
                     wherry_engine_step(nullptr, &event, 1, &n),
                     wherry_engine_step(h.engine, &event, 1, nullptr),
                     wherry_engine_launch(nullptr),
                     wherry_engine_collect(nullptr, &event, 1, &n),
                     wherry_engine_start(nullptr),
                     wherry_engine_stop(nullptr),
                     wherry_engine_wait(nullptr, &event, 1, 0, &n),
                     wherry_engine_wake(nullptr),
                     wherry_engine_stats(nullptr, &stats),
                     wherry_engine_stats(h.engine, nullptr),
                     wherry_engine_step(h.engine, nullptr, 1, &n)}) {
    CHECK_EQ(status, WHERRY_INVALID_ARGUMENT);
  }
  CHECK_EQ(wherry_engine_destroy(nullptr), WHERRY_OK);
  CHECK_EQ(wherry_model_free(nullptr), WHERRY_OK);
  CHECK(wherry_model_metadata(nullptr) == nullptr);
  CHECK_EQ(std::string(wherry_model_metadata(&h.model)), "{\"name\": \"fake\"}");
}

TEST(errors_have_a_status_and_a_text_of_their_thread) {
  Handles h;
  CHECK_EQ(wherry_engine_abort(h.engine, 5), WHERRY_NOT_FOUND);
  CHECK_CONTAINS(last_error(), "no request 5");
  std::thread([] { CHECK_EQ(last_error(), ""); }).join();
  wherry_engine* engine = nullptr;
  CHECK_EQ(wherry_engine_create(&h.model, nullptr, "{\"x\": 1}", &engine), WHERRY_INVALID_ARGUMENT);
  CHECK_CONTAINS(last_error(), "unknown key \"x\"");
  wherry_model* model = nullptr;
  CHECK_EQ(wherry_model_load("/nowhere/m.so", "/nowhere", "cpu", nullptr, &model),
           WHERRY_NOT_FOUND);
  CHECK_EQ(wherry_model_load("m", "w", "gpu", nullptr, &model), WHERRY_INVALID_ARGUMENT);
  CHECK_EQ(wherry_model_load("m", "w", "cpu", "[]", &model), WHERRY_INVALID_ARGUMENT);
  CHECK_EQ(wherry_model_load("system:none_", "w", "cpu", nullptr, &model), WHERRY_NOT_FOUND);
  testing::TemporaryFolder folder;
  std::string text_file = folder.write("m.so", "not a library");
  CHECK_EQ(wherry_model_load(text_file.c_str(), "w", "cpu", nullptr, &model), WHERRY_INCOMPATIBLE);
  CHECK_CONTAINS(last_error(), "libtvm_runtime");
}

TEST(the_collecting_thread_learns_why_a_step_failed) {
  Handles h;
  h.fake->on_launch = [](const Batch&) { throw std::runtime_error("broken kernel"); };
  wherry_params params = greedy(1);
  const int32_t token = 1;
  CHECK_EQ(wherry_engine_add(h.engine, 1, &token, 1, &params), WHERRY_OK);
  CHECK_EQ(wherry_engine_start(h.engine), WHERRY_OK);
  wherry_event event;
  size_t n = 0;
  CHECK_EQ(wherry_engine_wait(h.engine, &event, 1, 20000, &n), WHERRY_OK);
  CHECK_EQ(n, 1u);
  CHECK_EQ(event.finish, WHERRY_ERROR);
  CHECK_EQ(event.token, -1);
  CHECK_CONTAINS(last_error(), "broken kernel");
  CHECK_EQ(wherry_engine_launch(h.engine), WHERRY_BUSY);
  CHECK_EQ(wherry_engine_stop(h.engine), WHERRY_OK);
  CHECK_EQ(wherry_engine_launch(h.engine), WHERRY_OK);
}

TEST(an_engine_keeps_its_model) {
  auto* model = new wherry_model{std::make_shared<FakeModel>()};
  wherry_engine* engine = nullptr;
  CHECK_EQ(wherry_engine_create(model, nullptr, nullptr, &engine), WHERRY_OK);
  CHECK_EQ(wherry_model_free(model), WHERRY_OK);
  wherry_params params = greedy(1);
  const int32_t token = 1;
  CHECK_EQ(wherry_engine_add(engine, 1, &token, 1, &params), WHERRY_OK);
  wherry_event event;
  size_t n = 0;
  CHECK_EQ(wherry_engine_step(engine, &event, 1, &n), WHERRY_OK);
  CHECK_EQ(n, 1u);
  wherry_engine_destroy(engine);
}

}  // namespace
}  // namespace wherry
