#include "support/blake2b.h"

#include <algorithm>
#include <cstring>

namespace wherry {

namespace {

constexpr uint64_t kInitial[8] = {0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu,
                                  0xA54FF53A5F1D36F1u, 0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu,
                                  0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u};

// The message schedule SIGMA of RFC 7693, section 2.7; rounds 10 and 11 use its rows 0 and 1.
constexpr uint8_t kOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

uint64_t rotate_right(uint64_t v, int bits) { return v >> bits | v << (64 - bits); }

uint64_t load(const uint8_t* p) {  // reads little-endian on any machine
  uint64_t v = 0;
  for (int i = 7; i >= 0; --i) v = v << 8 | p[i];
  return v;
}

void mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d, uint64_t x, uint64_t y) {
  a += b + x;
  d = rotate_right(d ^ a, 32);
  c += d;
  b = rotate_right(b ^ c, 24);
  a += b + y;
  d = rotate_right(d ^ a, 16);
  c += d;
  b = rotate_right(b ^ c, 63);
}

}  // namespace

Blake2b::Blake2b() {
  std::copy(std::begin(kInitial), std::end(kInitial), state_);
  // Parameter block: no key, sequential, 32 bytes of digest.
  state_[0] ^= 0x01010000u ^ sizeof(Digest);
}

Blake2b& Blake2b::bytes(const void* data, size_t n) {
  const auto* p = static_cast<const uint8_t*>(data);
  while (n > 0) {
    if (filled_ == kBlock) {  // keeps the last block, which finish() compresses
      compress(false);
      filled_ = 0;
    }
    size_t taken = std::min(n, kBlock - filled_);
    std::memcpy(block_ + filled_, p, taken);
    filled_ += taken;
    p += taken;
    n -= taken;
  }
  return *this;
}

void Blake2b::compress(bool last) {
  total_ += filled_;
  uint64_t m[16], v[16];
  for (int i = 0; i < 16; ++i) m[i] = load(block_ + 8 * i);
  std::copy(state_, state_ + 8, v);
  std::copy(std::begin(kInitial), std::end(kInitial), v + 8);
  v[12] ^= total_;  // the upper 64 bits of the total are 0
  if (last) v[14] = ~v[14];
  for (int round = 0; round < 12; ++round) {
    const uint8_t* s = kOrder[round % 10];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
  for (int i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
}

Blake2b::Digest Blake2b::finish() {
  std::memset(block_ + filled_, 0, kBlock - filled_);
  compress(true);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(state_[i / 8] >> 8 * (i % 8));
  }
  return digest;
}

}  // namespace wherry
