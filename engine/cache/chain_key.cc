#include "cache/chain_key.h"

#include <cstring>

#include "support/blake2b.h"

namespace wherry {

namespace {

// The first byte of the hashed data, so that a page and a root never have the same key.
constexpr char kRoot = 'R', kPage = 'P';
// Version of block contents and file format; raise it when either changes. No lookup then finds old
// blocks, and the store evicts them as the least recently used.
constexpr uint64_t kVersion = 1;

}  // namespace

ChainKey ChainKey::root(const ChainRoot& root) {
  Blake2b hash;
  hash.bytes(&kRoot, 1).number(kVersion).text(root.layout).text(root.model);
  hash.number(root.salt).number(static_cast<uint64_t>(root.adapter));
  return {hash.finish(), 0};
}

ChainKey ChainKey::child(const int32_t* tokens, size_t n) const {
  Blake2b hash;
  hash.bytes(&kPage, 1).bytes(digest.data(), digest.size());
  // The number n needs no hashing, because the parent's length is fixed.
  hash.bytes(tokens, n * sizeof *tokens);
  return {hash.finish(), depth + 1};
}

std::string ChainKey::hex() const {
  static const char* kDigits = "0123456789abcdef";
  std::string digits;
  digits.reserve(2 * digest.size());
  for (uint8_t byte : digest) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

size_t ChainKeyHash::operator()(const ChainKey& key) const {
  size_t value;
  std::memcpy(&value, key.digest.data(), sizeof value);  // any 8 bytes of a digest make a good hash
  return value;
}

}  // namespace wherry
