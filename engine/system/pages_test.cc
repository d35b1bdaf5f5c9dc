#include "system/pages.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

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

#if defined(__linux__) && !defined(__ANDROID__)
// Returns the flags that the system has for the mapping of this address.
std::string flags_at(const void* memory) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &first, &last) == 2) {
      const auto address = reinterpret_cast<uintptr_t>(memory);
      inside = first <= address && address < last;
    }
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(large_memory_asks_for_large_pages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) return;  // none to be had
  for (const size_t megabytes : {8, 64}) {
    const size_t bytes = megabytes << 20;
    void* memory = pages::allocate(bytes);
    CHECK(memory != nullptr);
    CHECK_EQ(flags_at(memory).find(" hg ") != std::string::npos, megabytes == 64);
    pages::release(memory, bytes);
  }
}
#endif

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
