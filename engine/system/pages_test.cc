#include "system/pages.h"

#include <cstring>

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(memory_is_of_zeros_and_is_written) {
  constexpr size_t kBytes = 10 << 20;
  auto* memory = static_cast<char*>(pages::allocate(kBytes));
  CHECK(memory != nullptr);
  CHECK_EQ(static_cast<int>(memory[0] | memory[kBytes / 2] | memory[kBytes - 1]), 0);
  std::memset(memory, 7, kBytes);
  pages::discard(memory + 100, kBytes - 200);
  for (size_t i : {size_t{0}, size_t{99}, kBytes - 100, kBytes - 1}) {
    CHECK_EQ(static_cast<int>(memory[i]), 7);  // outside, and of pages with neighbours
  }
  memory[kBytes / 2] = 8;
  CHECK_EQ(static_cast<int>(memory[kBytes / 2]), 8);
  pages::release(memory, kBytes);
}

TEST(a_mapped_file_stays_when_its_name_goes) {
  testing::TemporaryFolder folder;
  const std::string path = folder.write("f", "content");
  void* memory = nullptr;
  {
    const files::File file(path, files::Open::kRead);
    memory = pages::map(file, 7);
  }
  CHECK(memory != nullptr);
  CHECK_EQ(std::string(static_cast<char*>(memory), 7), "content");
  pages::unmap(memory, 7);
  CHECK(files::remove(path));
}

}  // namespace
}  // namespace wherry
