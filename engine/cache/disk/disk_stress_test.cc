// Stress tests of a folder with several processes and threads, some of which are killed.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cache/disk/disk_store.h"
#include "testing/disk_blocks.h"
#include "testing/processes.h"
#include "testing/testing.h"

namespace wherry {
namespace {

namespace fs = std::filesystem;
using testing::bytes_in;
using testing::chain_of;
using testing::ChildProcess;
using testing::count_incoming;
using testing::keys_of;
using testing::load;
using testing::LoadResult;
using testing::loads;
using testing::options_of;
using testing::path_of;
using testing::save;

// Kills writers during writes until some have left half-written files.
TEST(killed_writers_leave_nothing_behind) {
  testing::TemporaryFolder folder;
  constexpr size_t kBytes = 1 << 20;
  DiskStoreOptions options = options_of(folder.path(), kBytes);
  options.max_bytes = 24 << 20;
  int torn = 0;
  for (int attempt = 0; attempt < 500 && torn < 3; ++attempt) {
    ChildProcess writer([&] {
      DiskStore store(options);
      for (int text = 0;; ++text) {
        for (const BlockLabel& label : chain_of(100 * attempt + text, 4, kBytes))
          save(store, label);
        store.flush();
      }
    });
    std::string second = path_of(folder.path(), chain_of(100 * attempt, 2, kBytes)[1].key);
    for (int i = 0; i < 5000 && !fs::exists(second); ++i) usleep(100);
    while (count_incoming(folder.path()) == 0) usleep(100);
    writer.kill();
    if (count_incoming(folder.path()) > 0) ++torn;
  }
  CHECK_EQ(torn, 3);
  DiskStore store(options);
  store.flush();
  CHECK_EQ(count_incoming(folder.path()), 0u);
  CHECK(bytes_in(folder.path()) <= options.max_bytes);
  int right = 0;
  for (int text = 0; text < 50000; text += 100) {
    for (const BlockLabel& label : chain_of(text, 4, kBytes)) {
      if (!store.has(label.key)) continue;
      CHECK(loads(store, label));
      ++right;
    }
  }
  CHECK(right > 0);
  BlockLabel next = chain_of(-1, 1, kBytes)[0];
  CHECK(save(store, next));  // succeeds only if no killed writer left a lock
  store.flush();
  CHECK_EQ(store.stats().saved, 1u);
  CHECK_EQ(store.stats().refused, 0u);
}

// Runs the load of one thread: it saves and loads in a folder that is much too small.
void hammer(DiskStore& store, uint64_t seed, int rounds) {
  uint64_t state = seed;
  auto random = [&](int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < rounds; ++round) {
    std::vector<BlockLabel> chain = chain_of(random(12), 1 + random(6), 6000);
    std::vector<ChainKey> keys = keys_of(chain);
    store.prefetch(keys.data(), keys.size());
    if (random(2) == 0) store.touch(keys.data(), keys.size());
    for (const BlockLabel& label : chain) {
      LoadResult result = load(store, label);
      CHECK(result != LoadResult::kWrong);
      if (result == LoadResult::kNothing) save(store, label);
    }
    if (random(20) == 0) store.flush();
    if (random(20) == 0) store.stats();
  }
}

// Damages blocks until `done`: flips bytes and truncates files.
void damage(const std::string& folder, const std::atomic<bool>& done) {
  uint64_t count = 0;
  while (!done) {
    BlockLabel label = chain_of(static_cast<int>(++count % 12), 1, 6000)[0];
    std::string path = path_of(folder, label.key);
    std::error_code gone;
    if (count % 2 == 0) {
      fs::resize_file(path, count % 5000, gone);
    } else if (fs::exists(path, gone)) {
      std::fstream(path, std::ios::in | std::ios::out)
          .seekp(static_cast<long>(count % 5000))
          .put(1);
    }
    usleep(500);
  }
}

TEST(threads_and_processes_at_once) {
  testing::TemporaryFolder folder;
  DiskStoreOptions options = options_of(folder.path(), 6000);
  options.max_bytes = 24 * 8192;
  options.queue_bytes = 6 * 6000;
  auto process = [&](uint64_t seed) {
    DiskStore store(options);
    std::atomic<bool> done{false};
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        try {
          hammer(store, 10 * seed + thread, 150);
        } catch (const testing::Failure&) {
          ++failures;
        }
      });
    }
    std::thread vandal([&] { damage(folder.path(), done); });
    for (std::thread& thread : threads) thread.join();
    done = true;
    vandal.join();
    CHECK_EQ(failures.load(), 0);
    store.flush();
    CHECK_EQ(store.stats().problem, "");
    CHECK(store.stats().loaded > 0);
    CHECK(store.stats().evicted > 0);
  };
  ChildProcess a([&] { process(1); });
  ChildProcess b([&] { process(2); });
  ChildProcess watcher([&] {
    for (int i = 0; i < 200; ++i) {
      if (fs::exists(folder.path() + "/incoming")) {
        CHECK(bytes_in(folder.path()) <= options.max_bytes);
      }
      usleep(5000);
    }
  });
  process(3);
  CHECK(a.succeeded());
  CHECK(b.succeeded());
  CHECK(watcher.succeeded());
  CHECK_EQ(count_incoming(folder.path()), 0u);
  CHECK(bytes_in(folder.path()) <= options.max_bytes);
}

}  // namespace
}  // namespace wherry
