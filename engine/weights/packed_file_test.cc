#include "weights/packed_file.h"

#include <filesystem>

#include "testing/testing.h"

namespace wherry {
namespace {

using testing::TemporaryFolder;

struct Example {
  Example() {
    first = layout.add("a float32 [3]", 12);
    second = layout.add("b int8 [5]", 5);
  }
  void write(const std::string& path, bool commit) const {
    PackedWriter writer(path, 7, layout);
    writer.write(second, "world", 5);
    writer.write(first, "hello, hello", 12);
    if (commit) writer.commit();
  }

  PackedLayout layout;
  int64_t first, second;
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
  auto file = open_packed(path, 7, example.layout);
  CHECK(file != nullptr);
  CHECK_EQ(example.first % 256, 0);
  CHECK_EQ(example.second % 256, 0);
  CHECK_EQ(std::string(file->data() + example.first, 12), "hello, hello");
  CHECK_EQ(std::string(file->data() + example.second, 5), "world");
  CHECK_EQ(files_in(folder.path() + "/new/folders"), 1u);
}

TEST(without_commit_nothing_stays) {
  TemporaryFolder folder;
  Example example;
  example.write(packed_path(folder.path(), 7), false);
  CHECK_EQ(files_in(folder.path()), 0u);
}

TEST(another_key_or_layout_or_damage_is_seen) {
  TemporaryFolder folder;
  Example example;
  std::string path = packed_path(folder.path(), 7);
  CHECK(open_packed(path, 7, example.layout) == nullptr);
  example.write(path, true);
  CHECK(open_packed(path, 8, example.layout) == nullptr);
  PackedLayout other;
  other.add("a float32 [3]", 12);
  other.add("c int8 [5]", 5);
  CHECK_EQ(other.file_size(), example.layout.file_size());
  CHECK(open_packed(path, 7, other) == nullptr);

  const std::string whole = read_file(path);
  for (size_t i : {0u, 9u, 17u, 25u, 33u}) {  // a bit in each field of the header
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    folder.write("packed-0000000000000007.bin", damaged);
    CHECK(open_packed(path, 7, example.layout) == nullptr);
  }
  folder.write("packed-0000000000000007.bin", whole.substr(0, whole.size() - 1));
  CHECK(open_packed(path, 7, example.layout) == nullptr);
  folder.write("packed-0000000000000007.bin", whole + "x");
  CHECK(open_packed(path, 7, example.layout) == nullptr);
  folder.write("packed-0000000000000007.bin", whole);
  CHECK(open_packed(path, 7, example.layout) != nullptr);
}

TEST(a_folder_that_cannot_be_written_is_an_error) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "");
  Example example;
  CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, example.write(packed_path(file, 7), true)), "pack_dir");
}

}  // namespace
}  // namespace wherry
