#include "cache/chain_key.h"

#include <cstring>

#include "support/blake2b.h"

namespace wherry {

namespace {

// First byte of what is hashed: no page has the name of a root.
constexpr char kRoot = 'R', kPage = 'P';
// Changes with the meaning of a block's bytes or its file's format: old blocks are then not found,
// and leave as the least recently used.
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
  hash.bytes(tokens, n * sizeof *tokens);  // the parent's size is fixed: their number is implied
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
  std::memcpy(&value, key.digest.data(), sizeof value);  // any part of the digest is well mixed
  return value;
}

}  // namespace wherry
