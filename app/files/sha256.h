// SHA-256 (FIPS 180-4), the checksum of files in manifests. This plain C++ is faster than any
// network, so it does not use the processor's SHA instructions.
#ifndef WHERRY_APP_FILES_SHA256_H_
#define WHERRY_APP_FILES_SHA256_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry::app {

class Sha256 {
 public:
  Sha256();
  Sha256& bytes(const void* data, size_t n);
  std::string finish();  // returns lower-case hexadecimal; may be called once

 private:
  static constexpr size_t kBlock = 64;  // bytes
  void compress(const uint8_t* block);

  uint32_t state_[8];
  uint64_t total_ = 0;  // bytes
  uint8_t block_[kBlock];
  size_t filled_ = 0;  // number of bytes in block_
};

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_SHA256_H_
