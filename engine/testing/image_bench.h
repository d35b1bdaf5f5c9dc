// An engine of a model for tests that takes images, its requests and their results.
#ifndef WHERRY_ENGINE_TESTING_IMAGE_BENCH_H_
#define WHERRY_ENGINE_TESTING_IMAGE_BENCH_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduling/engine.h"
#include "testing/fake_images.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {

inline FakeOptions seeing() {
  FakeOptions options;
  options.images = true;
  options.context = 128;
  return options;
}

// A request with images; `text` and images are appended in the order of calls.
struct Prompt {
  Prompt& text(int length, int first) {
    for (int i = 0; i < length; ++i) tokens.push_back((first + 7 * i) % 64);
    return *this;
  }
  Prompt& image(uint8_t seed, int rows = 8) {
    images.append(tokens, rows, seed);
    return *this;
  }
  Prompt& grid(uint8_t seed, size_t rows, size_t columns) {
    wherry_image& image = images.append(tokens, static_cast<int>(rows * columns), seed);
    image.grid_rows = rows;
    image.grid_columns = columns;
    return *this;
  }
  wherry_params params(int max_tokens = 5) const {
    wherry_params params;
    wherry_params_init(&params);
    params.temperature = 0;
    params.max_tokens = max_tokens;
    images.set(params);
    return params;
  }

  std::vector<int32_t> tokens;
  FakeImages images;
};

struct Result {
  std::vector<int32_t> tokens;  // with those of the prompt, where its logprobs are reported
  std::vector<float> embedding;
  int finish = WHERRY_RUNNING;
  int32_t cached = 0;
  std::string error;
};

struct Bench {
  explicit Bench(const char* config = "{}", FakeOptions given = seeing(),
                 std::shared_ptr<const Model> draft = nullptr)
      : options(given),
        model(std::make_shared<FakeModel>(options)),
        engine(model, std::move(draft), parse_engine_config(config, model->metadata())) {
    model->on_see = [this](const ImageTile&) { ++seen; };
  }

  void add(uint64_t id, const Prompt& prompt, const wherry_params& params) {
    engine.add(id, prompt.tokens.data(), prompt.tokens.size(), params);
  }
  void add(uint64_t id, const Prompt& prompt, int max_tokens = 5) {
    add(id, prompt, prompt.params(max_tokens));
  }

  void collect() {
    wherry_event events[64];
    std::string error;
    size_t n = engine.collect(events, 64, &error);
    for (size_t i = 0; i < n; ++i) {
      Result& result = results[events[i].id];
      CHECK_EQ(result.finish, WHERRY_RUNNING);
      result.finish = events[i].finish;
      result.cached = events[i].cached_tokens;
      if (events[i].token >= 0) result.tokens.push_back(events[i].token);
      if (events[i].finish == WHERRY_ERROR) result.error = error;
      const float* embedding = events[i].embedding;
      if (embedding) result.embedding.assign(embedding, embedding + events[i].n_embedding);
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
    for (int steps = 0; busy(); ++steps) {
      CHECK(steps < 2000);
      step();
    }
    CHECK_EQ(engine.stats().pages_free, engine.stats().pages_total);
  }

  void check(uint64_t id, const Prompt& prompt, int max_tokens = 5) {
    CHECK(results[id].tokens ==
          fake_output(options, prompt.tokens, prompt.params(max_tokens), options.context));
    CHECK_EQ(results[id].finish, WHERRY_LENGTH);
  }

  FakeOptions options;
  std::shared_ptr<FakeModel> model;
  Engine engine;
  std::map<uint64_t, Result> results;
  int seen = 0;
};

inline Prompt three_images() {
  Prompt prompt;
  prompt.text(3, 1).image(1).text(2, 9).image(2, 6).image(3, 7).text(4, 30);
  return prompt;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_IMAGE_BENCH_H_
