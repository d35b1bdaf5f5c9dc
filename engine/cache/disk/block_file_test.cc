#include "cache/disk/block_file.h"

#if !defined(_WIN32)
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "support/checksum.h"
#include "testing/blocks.h"
#include "testing/testing.h"

namespace wherry {
namespace {

using testing::chain_of;
using testing::content_of;
using testing::file_of;

struct Bench {
  testing::TemporaryFolder folder;
  BlockLabel label = chain_of(1, 2, 100)[1];
  std::string file = file_of(label);
  std::string out = std::string(100, '\0');

  BlockRead read(const std::string& content, const BlockLabel& label) {
    std::string path = folder.write("block", content);
    out.assign(label.block_bytes, '\0');
    return read_block(path, label, out.data());
  }
};

TEST(round_trip) {
  Bench bench;
  for (size_t bytes : {1, 31, 32, 4096, 100000}) {
    for (size_t tokens : {0, 1, 16, 17, 256}) {
      BlockLabel label = bench.label;
      label.block_bytes = bytes;
      label.tokens.assign(tokens, 7);
      CHECK_EQ(label.header_bytes() % 64, 0u);
      CHECK(bench.read(file_of(label), label) == BlockRead::kGood);
      CHECK(bench.out == content_of(label));
    }
  }
}

TEST(the_format_on_disk) {
  Bench bench;
  CHECK_EQ(bench.file.substr(0, 8), "WHBLOCK1");
  CHECK_EQ(bench.file.size(), 128 + 100u);
  CHECK_EQ(bench.file.substr(16, 32),
           std::string(bench.label.key.digest.begin(), bench.label.key.digest.end()));
  uint64_t numbers[2] = {100, 16};
  CHECK_EQ(bench.file.compare(48, 16, reinterpret_cast<const char*>(numbers), 16), 0);
  uint64_t checksum = checksum64(bench.file.data() + 128, 100);
  checksum = checksum64(bench.file.data() + 16, 112, checksum);
  CHECK_EQ(bench.file.compare(8, 8, reinterpret_cast<const char*>(&checksum), 8), 0);
}

TEST(every_flipped_byte_is_refused) {
  Bench bench;
  for (size_t i = 0; i < bench.file.size(); ++i) {
    for (int bits : {0x01, 0x80, 0xFF}) {
      std::string damaged = bench.file;
      damaged[i] = static_cast<char>(damaged[i] ^ bits);
      CHECK(bench.read(damaged, bench.label) == BlockRead::kRefused);
    }
  }
  CHECK(bench.read(bench.file, bench.label) == BlockRead::kGood);
}

TEST(every_other_length_is_refused) {
  Bench bench;
  for (size_t n = 0; n < bench.file.size(); ++n) {
    CHECK(bench.read(bench.file.substr(0, n), bench.label) == BlockRead::kRefused);
    std::string zeros = bench.file.substr(0, n) + std::string(bench.file.size() - n, '\0');
    if (zeros == bench.file) continue;
    // A power failure can leave a file of zeros.
    CHECK(bench.read(zeros, bench.label) == BlockRead::kRefused);
  }
  CHECK(bench.read(bench.file + '\0', bench.label) == BlockRead::kRefused);
  CHECK(bench.read(bench.file + bench.file, bench.label) == BlockRead::kRefused);
}

// The file is undamaged, but its label does not match its name, so it is rejected.
TEST(another_label_is_refused) {
  Bench bench;
  std::vector<BlockLabel> others(4, bench.label);
  others[0].key = chain_of(2, 2, 100)[1].key;
  others[1].tokens[15] = 8;
  others[2].tokens.pop_back();  // gives a file of the same size
  others[3].block_bytes = 99;
  CHECK_EQ(others[2].file_bytes(), bench.label.file_bytes());
  for (const BlockLabel& other : others) {
    CHECK(bench.read(file_of(other), bench.label) == BlockRead::kRefused);
    CHECK(bench.read(file_of(other), other) == BlockRead::kGood);
  }
}

TEST(what_is_no_file_is_refused) {
  Bench bench;
  std::string good = bench.folder.write("good", bench.file);
  char* out = bench.out.data();
#if !defined(_WIN32)
  std::string link = bench.folder.path() + "/link", pipe = bench.folder.path() + "/pipe";
  CHECK_EQ(symlink(good.c_str(), link.c_str()), 0);
  CHECK_EQ(mkfifo(pipe.c_str(), 0600), 0);
  CHECK(read_block(link, bench.label, out) == BlockRead::kRefused);
  CHECK(read_block(pipe, bench.label, out) == BlockRead::kRefused);
#endif
  CHECK(read_block(bench.folder.path(), bench.label, out) == BlockRead::kRefused);
  CHECK(read_block(good + "/none", bench.label, out) == BlockRead::kAbsent);
  CHECK(read_block(bench.folder.path() + "/none", bench.label, out) == BlockRead::kAbsent);
}

}  // namespace
}  // namespace wherry
