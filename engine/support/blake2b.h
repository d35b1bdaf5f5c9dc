// BLAKE2b-256 (RFC 7693) without a key, for names that must not collide even for untrusted input.
// The key chain of a prompt hashes one block (128 bytes) for each page, which takes about 0.2 us.
#ifndef WHERRY_ENGINE_SUPPORT_BLAKE2B_H_
#define WHERRY_ENGINE_SUPPORT_BLAKE2B_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

class Blake2b {
 public:
  using Digest = std::array<uint8_t, 32>;

  Blake2b();
  Blake2b& bytes(const void* data, size_t n);
  Blake2b& number(uint64_t v) { return bytes(&v, sizeof v); }
  // Hashes a text, its length first, so that "ab" + "c" and "a" + "bc" differ.
  Blake2b& text(const std::string& s) { return number(s.size()).bytes(s.data(), s.size()); }
  Digest finish();  // returns the digest; may be called once

 private:
  static constexpr size_t kBlock = 128;  // bytes
  void compress(bool last);

  uint64_t state_[8];
  uint64_t total_ = 0;  // bytes compressed so far, including the block that compress() works on
  uint8_t block_[kBlock];
  size_t filled_ = 0;  // number of bytes in block_
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_BLAKE2B_H_
