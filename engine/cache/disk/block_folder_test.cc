#include "cache/disk/block_folder.h"

#include <filesystem>

#include "cache/disk/folder_lock.h"
#include "testing/blocks.h"
#include "testing/testing.h"
#if !defined(_WIN32)
#include "testing/processes.h"
#endif

namespace wherry {
namespace {

namespace fs = std::filesystem;
using testing::chain_of;
#if !defined(_WIN32)
using testing::ChildProcess;
#endif
using testing::content_of;
using testing::file_of;

// Bytes of a block; with its header, it takes two of the file system's 4096-byte units.
constexpr size_t kBlock = 8000;
constexpr uint64_t kAllocated = 8192;

struct Bench {
  testing::TemporaryFolder root;
  std::string path = root.path() + "/cache";

  static void write(BlockFolder& folder, const BlockLabel& label) {
    std::string file = file_of(label);
    folder.write(label.key, file.data(), file.size(), wall_clock());
  }
  static bool reads(const BlockFolder& folder, const BlockLabel& label) {
    std::string out(label.block_bytes, '\0');
    return folder.read(label, out.data()) == BlockRead::kGood && out == content_of(label);
  }
  // Returns the digits (a label's index) of the labels whose blocks exist.
  static std::string present(const BlockFolder& folder, const std::vector<BlockLabel>& labels) {
    std::string stored;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (folder.has(labels[i].key)) stored += std::to_string(i);
    }
    return stored;
  }
  std::string make_incoming(const std::string& name, const std::string& content) {
    fs::create_directories(path + "/incoming");
    return root.write("cache/incoming/" + name, content);
  }
};

// Returns the labels of the first pages of n different texts.
std::vector<BlockLabel> texts(int n) {
  std::vector<BlockLabel> labels;
  for (int text = 0; text < n; ++text) labels.push_back(chain_of(text, 1, kBlock)[0]);
  return labels;
}

TEST(a_block_is_there_for_every_process) {
  Bench bench;
  BlockFolder folder(bench.path, 1 << 20);
  BlockLabel label = texts(1)[0];
  CHECK(!folder.has(label.key));
  CHECK(!Bench::reads(folder, label));
  Bench::write(folder, label);
  CHECK(folder.has(label.key));
  CHECK_EQ(folder.bytes(), kAllocated);
  Bench::write(folder, label);  // the second write finds that the block exists
  CHECK_EQ(folder.bytes(), kAllocated);
  CHECK(Bench::reads(BlockFolder(bench.path, 1 << 20), label));
#if !defined(_WIN32)  // no fork there
  ChildProcess child([&] { CHECK(Bench::reads(BlockFolder(bench.path, 1 << 20), label)); });
  CHECK(child.succeeded());
#endif
}

#if !defined(_WIN32)  // whose folders have the rights of the ones above them
TEST(only_the_owner_can_read) {
  Bench bench;
  BlockFolder folder(bench.path + "/", 1 << 20);  // a trailing slash of the path changes nothing
  BlockLabel label = texts(1)[0];
  Bench::write(folder, label);
  CHECK(fs::is_regular_file(bench.path + "/lock"));
  for (const auto& entry : fs::recursive_directory_iterator(bench.root.path())) {
    CHECK_EQ(static_cast<int>(entry.status().permissions()) & 077, 0);
  }
}
#endif

#if !defined(_WIN32)  // no fork there
TEST(a_relative_folder_stays_where_it_was) {
  Bench bench;
  ChildProcess child([&] {
    CHECK_EQ(chdir(bench.root.path().c_str()), 0);
    BlockFolder folder("cache", 1 << 20);
    CHECK_EQ(chdir("/"), 0);
    Bench::write(folder, texts(1)[0]);
  });
  CHECK(child.succeeded());
  CHECK(BlockFolder(bench.path, 1 << 20).has(texts(1)[0].key));
}
#endif

TEST(a_refused_block_is_removed) {
  Bench bench;
  BlockFolder folder(bench.path, 1 << 20);
  BlockLabel label = texts(1)[0], foreign = label;
  foreign.tokens[3] = -1;
  Bench::write(folder, foreign);
  CHECK(!Bench::reads(folder, label));
  CHECK(!folder.has(label.key));
  Bench::write(folder, label);
  CHECK(Bench::reads(folder, label));
}

TEST(the_least_recently_used_go_first) {
  Bench bench;
  std::vector<BlockLabel> labels = texts(6);
  BlockFolder folder(bench.path, 4 * kAllocated + kAllocated / 2);
  constexpr int64_t kTick = 1000;  // nanoseconds; Windows keeps times to 100 of them
  int64_t now = wall_clock();
  for (int i = 0; i < 4; ++i) {
    Bench::write(folder, labels[i]);
    folder.touch(labels[i].key, now + i * kTick);
  }
  folder.touch(labels[0].key, now + 10 * kTick);
  Bench::write(folder, labels[4]);
  CHECK_EQ(Bench::present(folder, labels), "0234");
  folder.touch(labels[4].key, now + 11 * kTick);
  // Simulates a restart of the process.
  BlockFolder later(bench.path, 4 * kAllocated + kAllocated / 2);
  later.touch(labels[2].key, now + 12 * kTick);
  Bench::write(later, labels[5]);
  CHECK_EQ(Bench::present(later, labels), "0245");
  CHECK_EQ(later.evicted(), 1u);
  CHECK(later.bytes() <= 4 * kAllocated + kAllocated / 2);
}

TEST(of_a_chain_the_end_goes_first) {
  Bench bench;
  std::vector<BlockLabel> chain = chain_of(1, 6, kBlock);
  BlockFolder folder(bench.path, 6 * kAllocated);
  for (const BlockLabel& label : chain) Bench::write(folder, label);
  int64_t now = wall_clock();
  for (const BlockLabel& label : chain) folder.touch(label.key, now);
  CHECK_EQ(Bench::present(folder, chain), "012345");
  // Simulates another process with a smaller limit.
  BlockFolder smaller(bench.path, 3 * kAllocated + kAllocated / 2);
  smaller.sweep();
  CHECK_EQ(Bench::present(smaller, chain), "012");
}

TEST(a_block_larger_than_the_limit_evicts_nothing) {
  Bench bench;
  std::vector<BlockLabel> labels = texts(2);
  BlockFolder folder(bench.path, kAllocated);
  Bench::write(folder, labels[0]);
  labels[1].block_bytes = 3 * kBlock;
  std::string error = ERROR_OF(WHERRY_INTERNAL, Bench::write(folder, labels[1]));
  CHECK_CONTAINS(error, "no room for a block of 24576 bytes, the limit (\"cache_bytes\") is 8192");
  CHECK_EQ(Bench::present(folder, labels), "0");
}

TEST(leftovers_of_the_dead_go_and_those_of_the_living_count) {
  Bench bench;
  std::vector<BlockLabel> labels = texts(3);
  std::string dead = bench.make_incoming("12345-0.tmp", "half a block");
  std::string alive = bench.make_incoming("12345-1.tmp", std::string(kBlock, 'x'));
  files::File writer(alive, files::Open::kLock);
  CHECK(writer.try_lock());
  BlockFolder folder(bench.path, 4 * kAllocated - 1);
  folder.sweep();
  CHECK(!fs::exists(dead));
  CHECK(fs::exists(alive));
  CHECK_EQ(folder.bytes(), kAllocated);
  for (const BlockLabel& label : labels) Bench::write(folder, label);
  // Two of the three are blocks, one is a file being written.
  CHECK_EQ(folder.bytes(), 3 * kAllocated);
  CHECK(fs::exists(alive));
  writer.unlock();
  writer.close();
  folder.sweep();
  CHECK(!fs::exists(alive));
  CHECK_EQ(folder.bytes(), 2 * kAllocated);
}

TEST(other_files_stay) {
  Bench bench;
  BlockLabel label = texts(1)[0];
  std::string digits = label.key.hex();
  bench.make_incoming("notes.tmp", "mine");
  bench.make_incoming("1-2.txt", "mine");
  fs::create_directories(bench.path + "/ab");
  fs::create_directories(bench.path + "/photos");
  bench.root.write("cache/ab/a.block", std::string(100000, 'x'));
  bench.root.write("cache/ab/" + digits + ".block.bak", "mine");
  bench.root.write("cache/photos/" + digits + ".block", "mine");
  bench.root.write("cache/" + digits + ".block", "mine");
  BlockFolder folder(bench.path, kAllocated);
  Bench::write(folder, label);
  folder.sweep();
  CHECK_EQ(folder.bytes(), kAllocated);
  for (const char* name : {"incoming/notes.tmp", "incoming/1-2.txt", "ab/a.block"}) {
    CHECK(fs::exists(bench.path + "/" + name));
  }
  CHECK(fs::exists(bench.path + "/ab/" + digits + ".block.bak"));
  CHECK(fs::exists(bench.path + "/photos/" + digits + ".block"));
  CHECK(fs::exists(bench.path + "/" + digits + ".block"));
}

TEST(a_damaged_count_is_computed_again) {
  Bench bench;
  std::vector<BlockLabel> labels = texts(3);
  BlockFolder folder(bench.path, 1 << 20);
  for (const char* damage : {"", "x", "sixteen bytes...", "more than sixteen bytes"}) {
    for (const BlockLabel& label : labels) {
      bench.root.write("cache/lock", damage);
      Bench::write(folder, label);
    }
    CHECK_EQ(folder.bytes(), 3 * kAllocated);
    for (const BlockLabel& label : labels) {
      fs::remove(bench.path + "/" + label.key.hex().substr(0, 2) + "/" + label.key.hex() +
                 ".block");
    }
  }
}

TEST(a_folder_that_is_emptied_fills_again) {
  Bench bench;
  std::vector<BlockLabel> labels = texts(2);
  BlockFolder folder(bench.path, 1 << 20);
  Bench::write(folder, labels[0]);
  fs::remove_all(bench.path);
  CHECK(!folder.has(labels[0].key));
  Bench::write(folder, labels[1]);
  CHECK_EQ(Bench::present(folder, labels), "1");
  CHECK_EQ(folder.bytes(), kAllocated);
}

#if !defined(_WIN32)  // no fork there
// Tests that a lock holds on the current lock file: the file is deleted while one process has the
// lock and another waits for it.
TEST(a_lock_is_on_the_file_that_is_there) {
  testing::TemporaryFolder folder;
  std::string path = folder.path() + "/lock";
  auto first = std::make_unique<FolderLock>(path);
  first->set_number(1);
  ChildProcess waits([&] {
    FolderLock second(path);
    CHECK(!second.number().has_value());
    second.set_number(2);
  });
  usleep(20000);
  fs::remove(path);
  first.reset();
  CHECK(waits.succeeded());
  CHECK_EQ(FolderLock(path).number().value_or(0), 2u);
}
#endif

}  // namespace
}  // namespace wherry
