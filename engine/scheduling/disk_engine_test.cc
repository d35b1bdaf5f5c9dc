// Tests prefixes on disk: the next engine reads them, or computes them again if they are damaged.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "scheduling/engine.h"
#include "testing/fake_model.h"
#include "testing/testing.h"

namespace wherry {
namespace {

using testing::TemporaryFolder;

std::vector<int32_t> prompt_of(int length, int first) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back((first + 7 * i) % 64);
  return prompt;
}

struct Answer {
  std::vector<int32_t> tokens;
  int32_t cached = 0;
};

// Simulates a restarted process: a new engine over the same folder.
struct Process {
  Process(const std::string& folder, FakeOptions options = {}, int kv_tokens = 512)
      : model(std::make_shared<FakeModel>(options)),
        engine(
            model,
            parse_engine_config(
                concat(R"({"cache_dir": ")", folder, R"(", "kv_tokens": )", kv_tokens, "}").c_str(),
                model->metadata())) {}

  Answer ask(const std::vector<int32_t>& prompt, uint64_t salt = 0) {
    wherry_params params;
    wherry_params_init(&params);
    params.temperature = 0;
    params.max_tokens = 6;
    params.salt = salt;
    engine.add(1, prompt.data(), prompt.size(), params);
    Answer answer;
    for (int steps = 0; steps < 100; ++steps) {
      wherry_event events[8];
      std::string error;
      size_t n = engine.step(events, 8, &error);
      for (size_t i = 0; i < n; ++i) {
        answer.tokens.push_back(events[i].token);
        answer.cached = events[i].cached_tokens;
        if (events[i].finish != WHERRY_RUNNING) {
          CHECK(answer.tokens == fake_output(model->options, prompt, params, 64));
          return answer;
        }
      }
    }
    CHECK(!"it ends");
    return answer;
  }

  // Runs a step without requests, which saves all queued pages.
  void idle() {
    wherry_event event;
    std::string error;
    engine.step(&event, 1, &error);
  }

  std::shared_ptr<FakeModel> model;
  Engine engine;
};

TEST(a_prompt_is_a_hit_after_a_restart) {
  TemporaryFolder folder;
  auto prompt = prompt_of(41, 3);
  CHECK_EQ(Process(folder.path()).ask(prompt).cached, 0);
  Process again(folder.path());
  CHECK_EQ(again.ask(prompt).cached, 40);
  CHECK_EQ(again.engine.stats().disk_tokens, 40u);
  CHECK_EQ(again.engine.stats().prefill_tokens, 1u);
  CHECK_EQ(again.ask(prompt).cached, 40);  // the 40 tokens now come from memory
  CHECK_EQ(again.engine.stats().disk_tokens, 40u);
}

TEST(a_part_in_memory_and_a_part_on_disk) {
  TemporaryFolder folder;
  Process(folder.path()).ask(prompt_of(41, 3));
  Process again(folder.path());
  // Reads 8 pages from disk; page 9 and the tokens after it are half a page.
  again.ask(prompt_of(10, 3));
  CHECK_EQ(again.ask(prompt_of(41, 3)).cached, 40);
}

TEST(what_left_memory_is_read_back) {
  TemporaryFolder folder;
  Process process(folder.path(), {}, 64);
  process.ask(prompt_of(41, 3));
  process.idle();
  process.ask(prompt_of(41, 4));  // the cache has room for one of the two prompts
  CHECK_EQ(process.ask(prompt_of(41, 3)).cached, 40);
  CHECK(process.engine.stats().disk_tokens > 0);
}

TEST(other_models_and_other_salts_find_nothing) {
  TemporaryFolder folder;
  auto prompt = prompt_of(41, 3);
  Process(folder.path()).ask(prompt);
  FakeOptions other;
  other.seed = 9;
  CHECK_EQ(Process(folder.path(), other).ask(prompt).cached, 0);
  CHECK_EQ(Process(folder.path()).ask(prompt, 5).cached, 0);
}

TEST(a_damaged_block_is_computed_again) {
  TemporaryFolder folder;
  auto prompt = prompt_of(41, 3);
  Process(folder.path()).ask(prompt);
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file() || entry.file_size() < 40) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(entry.file_size()) - 3);
    file.put('x');
    if (++damaged == 4) break;
  }
  CHECK_EQ(damaged, 4);
  CHECK(Process(folder.path()).ask(prompt).cached < 40);
  // Each run finds the next damaged block, removes it and saves it again.
  for (int run = 1; run < damaged; ++run) Process(folder.path()).ask(prompt);
  CHECK_EQ(Process(folder.path()).ask(prompt).cached, 40);
}

TEST(a_folder_that_cannot_be_used_is_refused_at_the_start) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "not a folder"), broken = folder.path() + "/broken";
  std::filesystem::create_directories(broken + "/lock");
  for (const std::string& path : {file, file + "/below", broken}) {
    std::string said = ERROR_OF(WHERRY_INVALID_ARGUMENT, Process{path});
    CHECK_CONTAINS(said, "prefixes cannot be kept on disk: " + path);
  }
}

// Simulates a full disk: a file takes the place of a block's folder.
TEST(a_folder_that_fails_later_costs_nothing_else_and_is_reported) {
  TemporaryFolder folder;
  Process process(folder.path());
  CHECK(process.engine.stats().disk_problem == nullptr);
  CHECK_EQ(process.engine.stats().disk_dropped, 0u);
  const std::string digits = "0123456789abcdef";
  for (char a : digits) {
    for (char b : digits) folder.write(std::string{a, b}, "a file");
  }
  std::string reason;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; reason.empty() && std::chrono::steady_clock::now() < end; ++i) {
    CHECK_EQ(process.ask(prompt_of(41, 100 + i)).tokens.size(), 6u);
    process.idle();  // the disk tier's thread writes the queued pages
    if (const char* said = process.engine.stats().disk_problem) reason = said;
  }
  CHECK_CONTAINS(reason, folder.path() + "/");
  CHECK(process.engine.stats().disk_dropped > 0);
  CHECK(process.engine.stats().disk_problem == process.engine.stats().disk_problem);
}

TEST(models_with_windows_do_without) {
  TemporaryFolder folder;
  FakeOptions windowed;
  windowed.window = 9;
  Process(folder.path(), windowed).ask(prompt_of(41, 3));
  Process again(folder.path(), windowed);
  CHECK_EQ(again.ask(prompt_of(41, 3)).cached, 0);
  CHECK_CONTAINS(again.engine.stats().disk_problem, "do not see all tokens");
}

TEST(models_with_a_recurrent_state_do_without) {
  TemporaryFolder folder;
  FakeOptions recurrent;
  recurrent.recurrent = true;
  Process(folder.path(), recurrent).ask(prompt_of(41, 3));
  Process again(folder.path(), recurrent);
  CHECK_EQ(again.ask(prompt_of(41, 3)).cached, 0);
  CHECK_CONTAINS(again.engine.stats().disk_problem, "has a recurrent state");
}

}  // namespace
}  // namespace wherry
