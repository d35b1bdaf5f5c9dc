#include "system/files.h"

#include <cerrno>
#include <filesystem>
#include <set>

#include "system/path.h"
#include "testing/testing.h"

namespace wherry {
namespace {

namespace fs = std::filesystem;
using files::File;
using files::Open;

struct Bench {
  testing::TemporaryFolder folder;
  std::string at(const std::string& name) const { return folder.path() + "/" + name; }
};

std::string content(const std::string& path) {
  const File file(path, Open::kRead);
  std::string text(static_cast<size_t>(file.info()->bytes), ' ');
  CHECK(file.read_at(text.data(), text.size(), 0));
  return text;
}

TEST(what_is_written_is_read) {
  Bench bench;
  File file(bench.at("f"), Open::kNew);
  CHECK(file && file.set_size(6) && file.write_at("def", 3, 3) && file.write_at("abc", 3, 0));
  CHECK(file.flush());
  CHECK_EQ(file.info()->bytes, 6u);
  CHECK_EQ(content(bench.at("f")), "abcdef");
  char more[8];
  CHECK(!File(bench.at("f"), Open::kRead).read_at(more, 8, 0));
  CHECK_EQ(errno, EIO);  // the file ends before
  CHECK(!File(bench.at("f"), Open::kNew));
  CHECK_EQ(errno, EEXIST);
  CHECK(File(bench.at("f"), Open::kReplace));
  CHECK_EQ(content(bench.at("f")), "");
}

TEST(what_is_not_there_says_so) {
  Bench bench;
  for (Open how : {Open::kRead, Open::kPlain}) {
    CHECK(!File(bench.at("none"), how));
    CHECK_EQ(errno, ENOENT);
  }
  CHECK(!files::remove(bench.at("none")));
  CHECK_EQ(errno, ENOENT);
  CHECK(!files::can_read(bench.at("none")));
  CHECK(!files::info_of(bench.at("none")));
  CHECK(!files::info_of(bench.folder.path()));
  CHECK(!File(bench.folder.path(), Open::kRead).info());
  CHECK_EQ(errno, EISDIR);
}

TEST(names_of_every_language_and_length) {
  Bench bench;
  const std::string name = "\u6a21\u578b \u00fc\U0001f98a";
  bench.folder.write("plain", "x");
  CHECK(files::rename(bench.at("plain"), bench.at(name)));
  CHECK_EQ(content(bench.at(name)), "x");
  CHECK(fs::exists(path_of(bench.at(name))));
  std::set<std::string> names;
  files::for_each_name(bench.folder.path(), [&](const std::string& entry) { names.insert(entry); });
  CHECK_EQ(names.count(name), 1u);
  CHECK_EQ(names.size(), 3u);  // with . and ..
  std::string deep = bench.folder.path();
  for (int i = 0; i < 6; ++i) {
    deep += "/" + std::string(60, static_cast<char>('a' + i));
    CHECK(files::make_folder(deep));
    CHECK(files::make_folder(deep));  // it is there already
  }
  CHECK(File(deep + "/f", Open::kNew).write_at("y", 1, 0));
  CHECK_EQ(content(deep + "/f"), "y");
  CHECK(files::remove(deep + "/f"));
  CHECK(files::can_write_in(deep));
  CHECK(!files::can_write_in(deep + "/none"));
}

TEST(open_files_are_renamed_replaced_and_removed) {
  Bench bench;
  bench.folder.write("a", "first");
  bench.folder.write("b", "second");
  File first(bench.at("a"), Open::kRead);
  CHECK(first.is_named(bench.at("a")));
  CHECK(files::rename(bench.at("b"), bench.at("a")));
  CHECK(!first.is_named(bench.at("a")));
  CHECK_EQ(content(bench.at("a")), "second");
  File second(bench.at("a"), Open::kRead);
  CHECK(files::rename(bench.at("a"), bench.at("c")));
  CHECK(second.is_named(bench.at("c")));
  CHECK(files::remove(bench.at("c")));
  second.close();
  CHECK(!second);
  CHECK(!files::can_read(bench.at("c")));
}

TEST(a_lock_is_one_file_s_at_a_time) {
  Bench bench;
  File first(bench.at("lock"), Open::kLock), second(bench.at("lock"), Open::kLock);
  CHECK(first.try_lock());
  CHECK(!second.try_lock());
  CHECK_EQ(errno, EWOULDBLOCK);
  CHECK(second.write_at("x", 1, 0));  // it prevents no write
  CHECK_EQ(content(bench.at("lock")), "x");
  first.unlock();
  CHECK(second.try_lock());
  second.close();
  CHECK(first.try_lock());
}

TEST(times_are_kept) {
  Bench bench;
  const int64_t now = files::wall_clock();
  CHECK(now > 1700000000000000000);
  const std::string path = bench.folder.write("f", "abc");
  CHECK(files::info_of(path)->modified > now - 60000000000);
  const int64_t then = 1234567890123456700;  // Windows counts hundreds of nanoseconds
  CHECK(files::set_modified(path, then));
  CHECK_EQ(files::info_of(path)->modified, then);
  File file(path, Open::kLock);
  CHECK(file.set_modified(then + 1000));
  CHECK_EQ(file.info()->modified, then + 1000);
  CHECK_EQ(files::info_of(path)->bytes, 3u);
  File(path, Open::kPlain).read_ahead();
  CHECK(files::process_id() > 0);
}

TEST(a_link_is_refused_where_it_matters) {
  Bench bench;
  bench.folder.write("f", "abc");
  std::error_code error;
  fs::create_symlink(path_of(bench.at("f")), path_of(bench.at("link")), error);
  if (error) return;  // Windows allows links to administrators, and wine refuses them
  CHECK_EQ(content(bench.at("link")), "abc");
  for (Open how : {Open::kPlain, Open::kLock}) {
    CHECK(!File(bench.at("link"), how));
    CHECK_EQ(errno, ELOOP);
  }
}

}  // namespace
}  // namespace wherry
