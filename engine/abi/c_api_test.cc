#include "abi/c_api.h"

#include <cstring>
#include <thread>

#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

std::string last_error() { return core_last_error(); }

struct Handles {
  explicit Handles(const char* config = "{}") : fake(std::make_shared<FakeModel>()), model{fake} {
    CHECK_EQ(core_create(&model, nullptr, config, &engine), CORE_OK);
  }
  ~Handles() { core_destroy(engine); }
  std::shared_ptr<FakeModel> fake;
  core_model model;
  core_engine* engine = nullptr;
};

core_params greedy(int max_tokens) {
  core_params params;
  std::memset(&params, 0xFF, sizeof params);
  core_params_init(&params);
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

TEST(a_request_from_start_to_end) {
  CHECK_EQ(core_version(), WHERRY_ABI_VERSION);
  Handles h(R"({"max_batch": 2})");
  core_params params = greedy(3);
  params.top_logprobs = 2;
  const int32_t prompt[] = {5, 6, 7};
  CHECK_EQ(core_add(h.engine, 9, prompt, 3, &params), CORE_OK);
  auto expected = fake_output({}, {5, 6, 7}, params, 64);
  core_event events[4];
  size_t n = 99;
  for (size_t i = 0; i < 3; ++i) {
    CHECK_EQ(core_step(h.engine, events, 4, &n), CORE_OK);
    CHECK_EQ(n, 1u);
    CHECK_EQ(events[0].id, 9u);
    CHECK_EQ(events[0].token, expected[i]);
    CHECK_EQ(events[0].n_top, 2);
    CHECK_EQ(events[0].top_ids[0], expected[i]);
    CHECK_EQ(events[0].top_logprobs[0], events[0].logprob);
    CHECK(events[0].top_logprobs[1] < events[0].logprob);
    CHECK_EQ(events[0].finish, i == 2 ? CORE_LENGTH : CORE_RUNNING);
  }
  CHECK_EQ(core_step(h.engine, events, 4, &n), CORE_OK);
  CHECK_EQ(n, 0u);
  core_stats_t stats;
  CHECK_EQ(core_stats(h.engine, &stats), CORE_OK);
  CHECK_EQ(stats.steps, 3u);
  CHECK_EQ(stats.prefill_tokens, 3u);
  CHECK_EQ(stats.decode_tokens, 3u);
  CHECK_EQ(stats.finished, 1u);
  CHECK_EQ(stats.page_size, 4);
  CHECK_EQ(stats.pages_total, 2 * 64 / 4);
}

TEST(null_arguments_are_refused) {
  Handles h;
  core_params params = greedy(1);
  core_event event;
  core_stats_t stats;
  size_t n = 0;
  const int32_t token = 1;
  core_engine* engine = nullptr;
  core_model* model = nullptr;
  for (int status : {core_model_load(nullptr, "w", "cpu", nullptr, &model),
                     core_model_load("l", nullptr, "cpu", nullptr, &model),
                     core_model_load("l", "w", "cpu", nullptr, nullptr),
                     core_create(nullptr, nullptr, "", &engine),
                     core_create(&h.model, nullptr, "", nullptr),
                     core_create(&h.model, &h.model, "", &engine),
                     core_add(nullptr, 1, &token, 1, &params),
                     core_add(h.engine, 1, nullptr, 1, &params),
                     core_add(h.engine, 1, &token, 1, nullptr),
                     core_abort(nullptr, 1),
                     core_reset(nullptr),
                     core_step(nullptr, &event, 1, &n),
                     core_step(h.engine, &event, 1, nullptr),
                     core_step_launch(nullptr),
                     core_step_collect(nullptr, &event, 1, &n),
                     core_start(nullptr),
                     core_stop(nullptr),
                     core_wait_events(nullptr, &event, 1, 0, &n),
                     core_wake(nullptr),
                     core_stats(nullptr, &stats),
                     core_stats(h.engine, nullptr),
                     core_step(h.engine, nullptr, 1, &n)}) {
    CHECK_EQ(status, CORE_INVALID_ARGUMENT);
  }
  CHECK_EQ(core_destroy(nullptr), CORE_OK);
  CHECK_EQ(core_model_free(nullptr), CORE_OK);
  CHECK(core_model_metadata(nullptr) == nullptr);
  CHECK_EQ(std::string(core_model_metadata(&h.model)), "{\"name\": \"fake\"}");
}

TEST(errors_have_a_status_and_a_text_of_their_thread) {
  Handles h;
  CHECK_EQ(core_abort(h.engine, 5), CORE_NOT_FOUND);
  CHECK_CONTAINS(last_error(), "no request 5");
  std::thread([] { CHECK_EQ(last_error(), ""); }).join();
  core_engine* engine = nullptr;
  CHECK_EQ(core_create(&h.model, nullptr, "{\"x\": 1}", &engine), CORE_INVALID_ARGUMENT);
  CHECK_CONTAINS(last_error(), "unknown key \"x\"");
  core_model* model = nullptr;
  CHECK_EQ(core_model_load("/nowhere/m.so", "/nowhere", "cpu", nullptr, &model), CORE_NOT_FOUND);
  CHECK_EQ(core_model_load("m", "w", "gpu", nullptr, &model), CORE_INVALID_ARGUMENT);
  CHECK_EQ(core_model_load("m", "w", "cpu", "[]", &model), CORE_INVALID_ARGUMENT);
  CHECK_EQ(core_model_load("system:none_", "w", "cpu", nullptr, &model), CORE_INCOMPATIBLE);
  testing::TemporaryFolder folder;
  std::string text_file = folder.write("m.so", "not a library");
  CHECK_EQ(core_model_load(text_file.c_str(), "w", "cpu", nullptr, &model), CORE_INCOMPATIBLE);
  CHECK_CONTAINS(last_error(), "libtvm_runtime");
}

TEST(the_collecting_thread_learns_why_a_step_failed) {
  Handles h;
  h.fake->on_launch = [](const Batch&) { throw std::runtime_error("broken kernel"); };
  core_params params = greedy(1);
  const int32_t token = 1;
  CHECK_EQ(core_add(h.engine, 1, &token, 1, &params), CORE_OK);
  CHECK_EQ(core_start(h.engine), CORE_OK);
  core_event event;
  size_t n = 0;
  CHECK_EQ(core_wait_events(h.engine, &event, 1, 20000, &n), CORE_OK);
  CHECK_EQ(n, 1u);
  CHECK_EQ(event.finish, CORE_ERROR);
  CHECK_EQ(event.token, -1);
  CHECK_CONTAINS(last_error(), "broken kernel");
  CHECK_EQ(core_step_launch(h.engine), CORE_BUSY);
  CHECK_EQ(core_stop(h.engine), CORE_OK);
  CHECK_EQ(core_step_launch(h.engine), CORE_OK);
}

TEST(an_engine_keeps_its_model) {
  auto* model = new core_model{std::make_shared<FakeModel>()};
  core_engine* engine = nullptr;
  CHECK_EQ(core_create(model, nullptr, nullptr, &engine), CORE_OK);
  CHECK_EQ(core_model_free(model), CORE_OK);
  core_params params = greedy(1);
  const int32_t token = 1;
  CHECK_EQ(core_add(engine, 1, &token, 1, &params), CORE_OK);
  core_event event;
  size_t n = 0;
  CHECK_EQ(core_step(engine, &event, 1, &n), CORE_OK);
  CHECK_EQ(n, 1u);
  core_destroy(engine);
}

}  // namespace
}  // namespace wherry
