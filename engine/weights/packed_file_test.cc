#include "weights/packed_file.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "testing/testing.h"

namespace wherry {
namespace {

using testing::TemporaryFolder;

struct Example {
  Example() {
    first = layout.add("a float32 [3]", 12);
    outside = layout.add_outside("c", 7);
    second = layout.add("b int8 [5]", 5);
  }
  void write(const std::string& path, bool commit) const {
    PackedWriter writer(path, 7, layout);
    writer.write(second, "world");
    writer.write(first, "hello, hello");
    writer.set_checksum(outside, 77);
    if (commit) writer.commit();
  }
  auto open(const std::string& path, uint64_t key = 7) const {
    return PackedFile::open(path, key, layout);
  }

  PackedLayout layout;
  size_t first, outside, second;
};

size_t files_in(const std::string& folder) {
  size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) n += entry.exists();
  return n;
}

TEST(what_is_written_is_mapped) {
  TemporaryFolder folder;
  Example example;
  std::string path = packed_path(folder.path() + "/new/folders", 0xABCDEF);
  CHECK_CONTAINS(path, "packed-0000000000abcdef.bin");
  example.write(path, true);
  auto file = example.open(path);
  CHECK(file != nullptr);
  for (size_t block : {example.first, example.second}) {
    CHECK_EQ(reinterpret_cast<uintptr_t>(file->block(block)) % 256, 0u);
  }
  CHECK_EQ(std::string(file->block(example.first), 12), "hello, hello");
  CHECK_EQ(std::string(file->block(example.second), 5), "world");
  CHECK_EQ(file->checksum(example.outside), 77u);
  CHECK(file->intact(1));
  CHECK(file->intact(3));
  CHECK_EQ(files_in(folder.path() + "/new/folders"), 1u);
}

TEST(without_commit_nothing_stays) {
  TemporaryFolder folder;
  Example example;
  example.write(packed_path(folder.path(), 7), false);
  CHECK_EQ(files_in(folder.path()), 0u);
}

TEST(another_key_or_layout_is_seen) {
  TemporaryFolder folder;
  Example example;
  std::string path = packed_path(folder.path(), 7);
  CHECK(example.open(path) == nullptr);
  example.write(path, true);
  CHECK(example.open(path, 8) == nullptr);
  PackedLayout other;
  other.add("a float32 [3]", 12);
  other.add_outside("d", 7);
  other.add("b int8 [5]", 5);
  CHECK_EQ(other.file_size(), example.layout.file_size());
  CHECK(PackedFile::open(path, 7, other) == nullptr);
}

TEST(a_flip_of_any_byte_that_counts_is_seen) {
  TemporaryFolder folder;
  Example example;
  std::string path = packed_path(folder.path(), 7);
  example.write(path, true);
  const std::string complete = read_file(path);
  auto usable = [&](const std::string& content) {
    folder.write("packed-0000000000000007.bin", content);
    auto file = example.open(path);
    return file != nullptr && file->intact(2);
  };
  size_t counting = 0;
  for (size_t i = 0; i < complete.size(); ++i) {
    std::string damaged = complete;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    counting += !usable(damaged);
  }
  CHECK_EQ(counting, 48u + 12 + 5 + 3 * 8);  // header, blocks and checksums; gaps are not written
  CHECK(!usable(complete.substr(0, complete.size() - 1)));
  CHECK(!usable(complete + "x"));
  CHECK(usable(complete));
}

TEST(a_folder_that_cannot_be_written_is_an_error) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "");
  Example example;
  CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, example.write(packed_path(file, 7), true)),
                 "cannot create packed weights: Not a directory");
}

TEST(a_disk_that_is_too_small_is_seen_before_anything_is_written) {
  TemporaryFolder folder;
  PackedLayout layout;
  layout.add("a int8 [10^18]", 1000000000000000000);
  const std::string path = packed_path(folder.path(), 7);
  const std::string error = ERROR_OF(WHERRY_NO_SPACE, PackedWriter(path, 7, layout));
  CHECK_CONTAINS(error, "The packed weights take 1000000000000.0 MB, " + folder.path() + " has ");
  CHECK_CONTAINS(error, " MB free");
  CHECK_EQ(files_in(folder.path()), 0u);
}

// Simulates a disk that fills up during the write by a file size limit, which also raises a signal.
TEST(a_disk_that_is_full_is_said_and_nothing_stays) {
  TemporaryFolder folder;
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit little{8, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  Example example;
  const std::string error =
      ERROR_OF(WHERRY_NO_SPACE, example.write(packed_path(folder.path(), 7), true));
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  CHECK_CONTAINS(error, "The packed weights take 0.0 MB, " + folder.path() + " had ");
  CHECK_EQ(files_in(folder.path()), 0u);
}

}  // namespace
}  // namespace wherry
