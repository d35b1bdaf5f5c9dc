#include "support/checksum.h"

#include <cstring>

namespace wherry {

namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu,
                   kPrime3 = 0x165667B19E3779F9u, kPrime4 = 0x85EBCA77C2B2AE63u,
                   kPrime5 = 0x27D4EB2F165667C5u;

uint64_t rotate_left(uint64_t v, int bits) { return v << bits | v >> (64 - bits); }

// Reads a word in native byte order, which is little-endian on every machine that we build for.
template <typename T>
uint64_t load(const unsigned char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint64_t round(uint64_t lane, uint64_t word) {
  return rotate_left(lane + word * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t value, uint64_t lane) {
  return (value ^ round(0, lane)) * kPrime1 + kPrime4;
}

// Hashes the bytes after the last stripe of 32, then mixes the result.
uint64_t finish(uint64_t value, const unsigned char* p, const unsigned char* end) {
  for (; end - p >= 8; p += 8) {
    value = rotate_left(value ^ round(0, load<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  }
  if (end - p >= 4) {
    value = rotate_left(value ^ load<uint32_t>(p) * kPrime1, 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) value = rotate_left(value ^ *p * kPrime5, 11) * kPrime1;
  value = (value ^ value >> 33) * kPrime2;
  value = (value ^ value >> 29) * kPrime3;
  return value ^ value >> 32;
}

}  // namespace

uint64_t checksum64(const void* data, size_t n, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  const unsigned char* end = p + n;
  if (n < 32) return finish(seed + kPrime5 + n, p, end);
  uint64_t a = seed + kPrime1 + kPrime2, b = seed + kPrime2, c = seed, d = seed - kPrime1;
  for (; end - p >= 32; p += 32) {
    a = round(a, load<uint64_t>(p));
    b = round(b, load<uint64_t>(p + 8));
    c = round(c, load<uint64_t>(p + 16));
    d = round(d, load<uint64_t>(p + 24));
  }
  uint64_t value = rotate_left(a, 1) + rotate_left(b, 7) + rotate_left(c, 12) + rotate_left(d, 18);
  value = merge(merge(merge(merge(value, a), b), c), d);
  return finish(value + n, p, end);
}

}  // namespace wherry
