// Tests requests with images that share the rows of image features.
#include <chrono>
#include <thread>

#include "testing/image_bench.h"
#include "testing/testing.h"

namespace wherry {
namespace {

TEST(requests_with_one_image_encode_it_once) {
  for (bool share : {true, false}) {
    FakeOptions options = seeing();
    Bench bench(
        concat(R"({"max_batch": 32, "prefix_cache": )", share ? "true" : "false", "}").c_str(),
        options);
    std::vector<Prompt> prompts(32);
    for (int id = 0; id < 32; ++id) {
      prompts[static_cast<size_t>(id)].text(1 + id % 5, id).image(7, 10).text(3, id);
      bench.add(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)]);
    }
    bench.run();
    for (int id = 0; id < 32; ++id) {
      bench.check(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)]);
    }
    CHECK_EQ(bench.seen, 1);
  }
}

TEST(more_images_than_the_store_has_rows) {
  Bench bench(R"({"max_batch": 4, "prefill_chunk": 6, "image_rows": 9})");
  std::vector<Prompt> prompts(4);
  for (int id = 0; id < 4; ++id) {
    Prompt& prompt = prompts[static_cast<size_t>(id)];
    for (int i = 0; i < 5; ++i) {
      const int seed = (3 * id + i) % 7;
      prompt.text(1 + i % 2, id).image(static_cast<uint8_t>(seed), 3 + seed);
    }
    prompt.text(2, 50);
    bench.add(static_cast<uint64_t>(id), prompt);
  }
  bench.run();
  for (int id = 0; id < 4; ++id) {
    bench.check(static_cast<uint64_t>(id), prompts[static_cast<size_t>(id)]);
  }
  CHECK(bench.seen >= 7);
}

TEST(an_image_that_is_in_use_stays) {
  Bench bench(R"({"max_batch": 3, "prefill_chunk": 3, "image_rows": 16})");
  std::vector<Prompt> prompts(3);
  for (uint8_t id = 0; id < 3; ++id) {
    prompts[id].image(id, 8).text(1, 1);
    bench.add(id, prompts[id]);
  }
  bench.run();
  for (uint8_t id = 0; id < 3; ++id) bench.check(id, prompts[id]);
  CHECK_EQ(bench.seen, 3);
}

// The younger request's image lies where the older one's would need to be.
TEST(the_first_request_takes_the_room_of_younger_ones) {
  Bench bench(R"({"max_batch": 2, "prefill_chunk": 2, "image_rows": 8})");
  Prompt small, large;
  small.image(1, 3).text(1, 1);
  large.text(2, 2).image(2, 8).text(1, 1);
  bench.add(1, large);
  bench.add(2, small);
  bench.run();
  bench.check(1, large);
  bench.check(2, small);
  CHECK_EQ(bench.seen, 3);
}

// A tenant pays for the time of the tower: it waits behind one that got more tokens in less time.
TEST(the_time_of_the_tower_is_charged_to_the_tenant) {
  Bench bench(R"({"max_batch": 1})");
  bench.model->on_see = [](const ImageTile&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  };
  Prompt images, text;
  images.image(1).image(2).image(3).text(1, 3);
  text.text(40, 2);
  auto add = [&](uint64_t id, uint64_t tenant, const Prompt& prompt, int max_tokens) {
    wherry_params params = prompt.params(max_tokens);
    params.user = tenant << 32;
    bench.add(id, prompt, params);
  };
  add(1, 1, images, 5);
  add(2, 2, text, 40);
  add(3, 1, images, 5);
  add(4, 2, text, 40);
  while (bench.results[1].finish == WHERRY_RUNNING || bench.results[2].finish == WHERRY_RUNNING) {
    bench.step();
  }
  while (bench.results[4].finish == WHERRY_RUNNING) {
    bench.step();
    CHECK(bench.results[3].tokens.empty());
  }
  bench.run();
}

}  // namespace
}  // namespace wherry
