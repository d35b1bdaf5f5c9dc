// XXH64, a checksum that finds accidental damage of large data at several gigabytes a second; not
// for secrets. https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
#ifndef WHERRY_ENGINE_SUPPORT_CHECKSUM_H_
#define WHERRY_ENGINE_SUPPORT_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

namespace wherry {

// Returns the XXH64 of n bytes. To chain pieces, pass the checksum of the previous piece as `seed`.
uint64_t checksum64(const void* data, size_t n, uint64_t seed = 0);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_CHECKSUM_H_
