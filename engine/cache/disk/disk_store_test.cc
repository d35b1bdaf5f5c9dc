#include "cache/disk/disk_store.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "cache/disk/folder_lock.h"
#include "testing/disk_blocks.h"
#include "testing/testing.h"
#if !defined(_WIN32)
#include <sys/resource.h>

#include "testing/processes.h"
#endif

namespace wherry {
namespace {

namespace fs = std::filesystem;
using testing::bytes_in;
using testing::chain_of;
#if !defined(_WIN32)
using testing::ChildProcess;
#endif
using testing::count_incoming;
using testing::keys_of;
using testing::load;
using testing::LoadResult;
using testing::loads;
using testing::options_of;
using testing::path_of;
using testing::save;

TEST(round_trip_and_restart) {
  testing::TemporaryFolder folder;
  std::vector<BlockLabel> chain = chain_of(1, 5, 10000);
  {
    DiskStore store(options_of(folder.path(), 10000));
    for (const BlockLabel& label : chain) {
      CHECK(!store.has(label.key));
      CHECK(save(store, label));
      CHECK(store.has(label.key));  // true whether or not the block was written
      CHECK(loads(store, label));
    }
    store.flush();
    for (const BlockLabel& label : chain) CHECK(loads(store, label));
    CHECK_EQ(store.stats().saved, 5u);
    CHECK_EQ(store.stats().loaded, 10u);
    CHECK_EQ(store.stats().bytes, 5 * 12288u);
    CHECK_EQ(store.stats().problem, "");
  }
  DiskStore store(options_of(folder.path(), 10000));
  std::vector<ChainKey> keys = keys_of(chain);
  store.prefetch(keys.data(), keys.size());
  for (const BlockLabel& label : chain) CHECK(loads(store, label));
  store.flush();
  CHECK_EQ(store.stats().bytes, 5 * 12288u);
}

TEST(what_is_queued_is_saved_when_the_store_closes) {
  testing::TemporaryFolder folder;
  std::vector<BlockLabel> chain = chain_of(1, 20, 100000);
  {
    DiskStore store(options_of(folder.path(), 100000));
    for (const BlockLabel& label : chain) CHECK(save(store, label));
  }
  DiskStore store(options_of(folder.path(), 100000));
  for (const BlockLabel& label : chain) CHECK(loads(store, label));
}

TEST(salt_layout_model_and_adapter_are_kept_apart) {
  testing::TemporaryFolder folder;
  DiskStore store(options_of(folder.path(), 100));
  std::vector<ChainRoot> roots(5, {"layout", "model", 0, 0});
  roots[1].layout = "layout 2";
  roots[2].model = "model 2";
  roots[3].salt = 1;
  roots[4].adapter = 1;
  for (const ChainRoot& root : roots) {
    BlockLabel label = chain_of(1, 1, 100, root)[0];
    CHECK(!store.has(label.key));
    CHECK(load(store, label) == LoadResult::kNothing);
    CHECK(save(store, label));
    CHECK(loads(store, label));
  }
}

TEST(blocks_of_two_models_share_a_folder) {
  testing::TemporaryFolder folder;
  DiskStore small(options_of(folder.path(), 100)), large(options_of(folder.path(), 9000));
  BlockLabel one = chain_of(1, 1, 100)[0];
  BlockLabel other = chain_of(1, 1, 9000, {"other layout", "model", 0, 0})[0];
  CHECK(save(small, one));
  CHECK(save(large, other));
  small.flush();
  large.flush();
  CHECK(loads(small, one));
  CHECK(loads(large, other));
  CHECK_EQ(bytes_in(folder.path()), 4096 + 12288u);
}

TEST(a_damaged_block_is_not_loaded_and_goes) {
  testing::TemporaryFolder folder;
  DiskStore store(options_of(folder.path(), 5000));
  BlockLabel label = chain_of(1, 1, 5000)[0];
  std::string path = path_of(folder.path(), label.key);
  for (int i = 0; i < 3; ++i) {
    CHECK(save(store, label));
    store.flush();
    CHECK(loads(store, label));
    if (i == 0) fs::resize_file(path, 5000);
    if (i == 1) fs::resize_file(path, 0);
    if (i == 2) std::fstream(path, std::ios::in | std::ios::out).seekp(3000).put('\0').put('\1');
    CHECK(load(store, label) == LoadResult::kNothing);
    CHECK(!fs::exists(path));
    CHECK(!store.has(label.key));
  }
  CHECK_EQ(store.stats().refused, 3u);
}

TEST(a_full_queue_drops_without_reading_the_page) {
  testing::TemporaryFolder folder;
  DiskStoreOptions options = options_of(folder.path(), 100);
  options.queue_bytes = 600;
  DiskStore store(options);
  store.flush();
  FolderLock lock(folder.path() + "/lock");  // holding the lock blocks writes
  std::vector<BlockLabel> chain = chain_of(1, 8, 100);
  int reads = 0;
  for (int i = 0; i < 8; ++i) {
    bool taken =
        store.save(chain[i].key, chain[i].tokens.data(), chain[i].tokens.size(), [&](void* out) {
          ++reads;
          testing::fill_block(chain[i], out);
        });
    CHECK_EQ(taken, i < 6);
    CHECK_EQ(loads(store, chain[i]), i < 6);  // 6 wait in the write queue, and are read there
  }
  CHECK_EQ(reads, 6);
  // The block is queued already, so save() returns true without a write.
  CHECK(save(store, chain[0]));
  CHECK_EQ(store.stats().dropped, 2u);
  int32_t other = 0;
  char out[100];
  CHECK(!store.load(chain[0].key, &other, 1, out));
}

TEST(a_page_that_cannot_be_read_is_not_saved) {
  testing::TemporaryFolder folder;
  DiskStore store(options_of(folder.path(), 100));
  BlockLabel label = chain_of(1, 1, 100)[0];
  bool thrown = false;
  try {
    store.save(label.key, label.tokens.data(), 16, [](void*) { throw std::runtime_error("lost"); });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  store.flush();
  CHECK(!store.has(label.key));
  CHECK(save(store, label));
  CHECK(loads(store, label));
}

TEST(the_limit_holds_and_what_is_used_stays) {
  testing::TemporaryFolder folder;
  DiskStoreOptions options = options_of(folder.path(), 3900);
  options.max_bytes = 40 * 4096;
  std::vector<BlockLabel> system = chain_of(0, 8, 3900);
  std::vector<ChainKey> keys = keys_of(system);
  for (int run = 0; run < 4; ++run) {
    DiskStore store(options);
    for (const BlockLabel& label : system) save(store, label);
    for (int text = 1; text <= 10; ++text) {
      for (const BlockLabel& label : chain_of(100 * run + text, 8, 3900)) CHECK(save(store, label));
      store.touch(keys.data(), keys.size());  // marks the blocks as used, as after a hit in memory
      store.flush();
      CHECK(bytes_in(folder.path()) <= options.max_bytes);
    }
    for (const BlockLabel& label : system) CHECK(loads(store, label));
    CHECK(store.stats().evicted > 0);
    CHECK_EQ(store.stats().saved, run == 0 ? 88u : 80u);
  }
}

// A file in the folder's place makes every call fail quietly.
TEST(a_folder_that_cannot_be_used_turns_the_tier_off) {
  testing::TemporaryFolder folder;
  std::string path = folder.write("cache", "a file");
  DiskStoreOptions options = options_of(path, 100);
  BlockLabel label = chain_of(1, 1, 100)[0];
  for (const std::string& below : {path, path + "/below"}) {
    options.folder = below;
    DiskStore store(options);
    store.flush();
#if defined(_WIN32)
    CHECK_CONTAINS(store.stats().problem, "No such file or directory");
#else
    CHECK_CONTAINS(store.stats().problem, "Not a directory");
#endif
    std::string reason = store.stats().problem;
    CHECK(!store.has(label.key));
    store.prefetch(&label.key, 1);
    store.touch(&label.key, 1);
    CHECK(load(store, label) == LoadResult::kNothing);
    CHECK(!save(store, label));
    store.flush();
    CHECK_EQ(store.stats().problem, reason);
    CHECK_EQ(store.stats().dropped, 1u);
  }
}

// Simulates a read-only folder, also when the test runs as root: writes fail, and existing blocks
// are used.
TEST(a_folder_that_cannot_be_written_is_read_and_tried_again) {
  testing::TemporaryFolder folder;
  std::vector<BlockLabel> chain = chain_of(1, 3, 100);
  DiskStoreOptions options = options_of(folder.path(), 100);
  {
    save(*std::make_unique<DiskStore>(options), chain[0]);
  }
  std::string incoming = folder.path() + "/incoming";
  fs::remove_all(incoming);
  folder.write("incoming", "a file");
  options.retry = std::chrono::milliseconds(0);
  DiskStore store(options);
  CHECK(loads(store, chain[0]));
  CHECK(save(store, chain[1]));
  store.flush();
  CHECK_CONTAINS(store.stats().problem, incoming);
  CHECK(!store.has(chain[1].key));
  CHECK(loads(store, chain[0]));
  fs::remove(incoming);
  CHECK(save(store, chain[2]));
  store.flush();
  CHECK_EQ(store.stats().problem, "");
  CHECK(loads(store, chain[2]));
}

#if !defined(_WIN32)  // no fork there
// Simulates a full disk: a write fails in the middle of a block and raises a signal.
TEST(a_limit_on_files_does_not_end_the_process) {
  testing::TemporaryFolder folder;
  BlockLabel small = chain_of(1, 1, 1000)[0];
  {
    save(*std::make_unique<DiskStore>(options_of(folder.path(), 1000)), small);
  }
  ChildProcess child([&] {
    rlimit limit{100000, 100000};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    DiskStore store(options_of(folder.path(), 200000));
    for (const BlockLabel& label : chain_of(2, 3, 200000)) {
      save(store, label);
      store.flush();
      CHECK_CONTAINS(store.stats().problem, "File too large");
      CHECK(!store.has(label.key));
    }
    CHECK_EQ(store.stats().dropped, 3u);
    CHECK_EQ(store.stats().saved, 0u);
  });
  CHECK(child.succeeded());
  CHECK_EQ(count_incoming(folder.path()), 0u);
  DiskStore store(options_of(folder.path(), 1000));
  CHECK(loads(store, small));
}
#endif

TEST(a_store_larger_than_its_limit_shrinks_at_the_start) {
  testing::TemporaryFolder folder;
  DiskStoreOptions options = options_of(folder.path(), 3900);
  std::vector<BlockLabel> chain = chain_of(1, 20, 3900);
  {
    DiskStore store(options);
    for (const BlockLabel& label : chain) save(store, label);
    // Marks the chain as used, as at the end of the request.
    store.touch(keys_of(chain).data(), chain.size());
  }
  CHECK_EQ(bytes_in(folder.path()), 20 * 4096u);
  options.max_bytes = 10 * 4096;
  DiskStore store(options);
  store.flush();
  CHECK(bytes_in(folder.path()) <= options.max_bytes);
  CHECK(loads(store, chain[0]));
  CHECK(!store.has(chain[19].key));
}

}  // namespace
}  // namespace wherry
