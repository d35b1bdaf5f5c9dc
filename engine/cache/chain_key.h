// The key of a page's content: a hash of its tokens and of everything before it that its keys and
// values depend on.
//
// BLAKE2b with 256 bits resists collisions, so no untrusted prompt can be crafted to hit the pages
// of another prefix. Comparing the page's tokens would not be enough: its content depends on all
// tokens before it, which the page does not store.
#ifndef WHERRY_ENGINE_CACHE_CHAIN_KEY_H_
#define WHERRY_ENGINE_CACHE_CHAIN_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

// Prefixes can share pages only if all of these fields are equal.
struct ChainRoot {
  std::string layout;  // of a page: dtype, shape, page size, interface, layout of kernels
  std::string model;   // hashes of the library and the weights
  uint64_t salt = 0;   // wherry_params.salt
  int32_t adapter = 0;
};

struct ChainKey {
  std::array<uint8_t, 32> digest{};
  int32_t depth = 0;  // pages from the root; the digest implies it

  static ChainKey root(const ChainRoot& root);
  // The key of the next page, whose n tokens may fill it only in part.
  ChainKey child(const int32_t* tokens, size_t n) const;

  std::string hex() const;  // 64 digits
  bool operator==(const ChainKey& other) const { return digest == other.digest; }
  bool operator!=(const ChainKey& other) const { return digest != other.digest; }
};

// Hashes a key for unordered containers.
struct ChainKeyHash {
  size_t operator()(const ChainKey& key) const;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_CHAIN_KEY_H_
