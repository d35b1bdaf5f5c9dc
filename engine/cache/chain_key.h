// The key of a page's content in the prefix cache: a hash of its tokens and of
// everything before it that its keys and values depend on.
//
// BLAKE2b with 256 bits resists collisions, so no untrusted prompt can be crafted
// to hit the pages of another prefix. Comparing the page's tokens would not be
// enough: its content depends on all tokens before it, which the page does not
// store.
#ifndef WHERRY_ENGINE_CACHE_CHAIN_KEY_H_
#define WHERRY_ENGINE_CACHE_CHAIN_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

// The root of a chain of keys: prefixes can share pages only if all of these fields are equal.
struct ChainRoot {
  std::string layout;  // layout of a page: dtype, shape, page size, interface, kernels' layout
  std::string model;   // hashes of the library and of the weights
  uint64_t salt = 0;   // wherry_params.salt of the request
  int32_t adapter = 0;
};

struct ChainKey {
  std::array<uint8_t, 32> digest{};
  int32_t depth = 0;  // number of pages from the root; the digest implies it

  static ChainKey root(const ChainRoot& root);
  // Returns the key of the next page, whose n tokens may fill it only in part.
  ChainKey child(const int32_t* tokens, size_t n) const;

  std::string hex() const;  // returns the digest as 64 hexadecimal digits
  bool operator==(const ChainKey& other) const { return digest == other.digest; }
  bool operator!=(const ChainKey& other) const { return digest != other.digest; }
};

// Hashes a chain key for unordered containers.
struct ChainKeyHash {
  size_t operator()(const ChainKey& key) const;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_CHAIN_KEY_H_
