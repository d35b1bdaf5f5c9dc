// The name of a page's content: its tokens, and everything before it that its keys and values
// depend on.
//
// BLAKE2b, 256 bits: nobody can make two prefixes of one name, so a prompt cannot be chosen to be
// answered from another's pages. Comparing the tokens of the page would not do in its place: a
// page depends on all tokens before it, and the page itself does not hold them.
#ifndef WHERRY_ENGINE_CACHE_CHAIN_KEY_H_
#define WHERRY_ENGINE_CACHE_CHAIN_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

// Who may share pages: all fields equal, or nothing is.
struct ChainRoot {
  std::string layout;  // of a page's bytes: dtype, shape, page size, interface, kernels' layout
  std::string model;   // what computed them: hashes of the library and the weights
  uint64_t salt = 0;   // wherry_params.salt
  int32_t adapter = 0;
};

struct ChainKey {
  std::array<uint8_t, 32> digest{};
  int32_t depth = 0;  // pages from the root; the digest implies it

  static ChainKey root(const ChainRoot& root);
  // Key of the next page, which may be partly filled (n tokens).
  ChainKey child(const int32_t* tokens, size_t n) const;

  std::string hex() const;  // 64 digits
  bool operator==(const ChainKey& other) const { return digest == other.digest; }
  bool operator!=(const ChainKey& other) const { return digest != other.digest; }
};

// For unordered containers.
struct ChainKeyHash {
  size_t operator()(const ChainKey& key) const;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_CHAIN_KEY_H_
