#if !defined(_WIN32)

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "system/pages.h"

namespace wherry::pages {

namespace {

// From this size on memory has pages of 2 MB where the system gives them: attention reads a cache
// in any order, and with pages of 4 KiB it waits for their addresses a fifth of its time. Such a
// page costs its memory once any part of it is written.
[[maybe_unused]] constexpr size_t kLarge = size_t{16} << 20;

}  // namespace

void* allocate(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE) && !defined(__ANDROID__)  // phones have no memory to spare for it
  if (bytes >= kLarge) madvise(memory, bytes, MADV_HUGEPAGE);  // fails where there are none
#endif
  return memory;
}

void release(void* memory, size_t bytes) { munmap(memory, bytes); }

void discard([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifndef __EMSCRIPTEN__  // WebAssembly memory never shrinks
#ifdef __APPLE__
  constexpr int kAdvice = MADV_FREE;
#else
  constexpr int kAdvice = MADV_DONTNEED;
#endif
  // Only whole pages of the system, because the others have content of the neighbours.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, kAdvice);
#endif
}

void* map(const files::File& file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, static_cast<int>(file.handle()), 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap(void* memory, size_t bytes) { munmap(memory, bytes); }

}  // namespace wherry::pages

#endif
