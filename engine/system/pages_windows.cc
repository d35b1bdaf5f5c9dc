#if defined(_WIN32)

#include <windows.h>

#include <cerrno>
#include <cstdint>

#include "system/pages.h"

namespace wherry::pages {

void* allocate(size_t bytes) {
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void release(void* memory, size_t) { VirtualFree(memory, 0, MEM_RELEASE); }

void discard(void* memory, size_t bytes) {
  SYSTEM_INFO system{};
  GetSystemInfo(&system);
  const uintptr_t page = system.dwPageSize;
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
  if (first < last) DiscardVirtualMemory(reinterpret_cast<void*>(first), last - first);
}

void* map(const files::File& file, size_t bytes) {
  HANDLE mapping = CreateFileMappingW(reinterpret_cast<HANDLE>(file.handle()), nullptr,
                                      PAGE_READONLY, 0, 0, nullptr);
  void* memory = mapping == nullptr ? nullptr : MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes);
  if (memory == nullptr) errno = GetLastError() == ERROR_NOT_ENOUGH_MEMORY ? ENOMEM : EIO;
  if (mapping != nullptr) CloseHandle(mapping);  // the view keeps it
  return memory;
}

void unmap(void* memory, size_t) { UnmapViewOfFile(memory); }

}  // namespace wherry::pages

#endif
