// Memory by pages, as the operating system gives it: pages_posix.cc, pages_windows.cc.
#ifndef WHERRY_ENGINE_SYSTEM_PAGES_H_
#define WHERRY_ENGINE_SYSTEM_PAGES_H_

#include <cstddef>

#include "system/files.h"

namespace wherry::pages {

// Returns memory of zeros, or null. Unwritten pages cost nothing, and `release` returns all of them
// to the system.
void* allocate(size_t bytes);
void release(void* memory, size_t bytes);

// Returns the whole pages in a part of such memory to the system, which may lose their content. A
// failure only keeps the memory.
void discard(void* memory, size_t bytes);

// Maps a file of `bytes` > 0 into memory, to be read. Returns null with errno on failure.
void* map(const files::File& file, size_t bytes);
void unmap(void* memory, size_t bytes);

}  // namespace wherry::pages

#endif  // WHERRY_ENGINE_SYSTEM_PAGES_H_
