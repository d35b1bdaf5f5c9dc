// FNV-1a, a 64-bit hash that names caches and finds accidental damage; not for secrets.
// http://www.isthe.com/chongo/tech/comp/fnv/
#ifndef WHERRY_ENGINE_SUPPORT_HASH_H_
#define WHERRY_ENGINE_SUPPORT_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry {

class Hash {
 public:
  Hash& bytes(const void* data, size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < n; ++i) value_ = (value_ ^ p[i]) * 0x100000001B3u;
    return *this;
  }
  Hash& number(uint64_t v) { return bytes(&v, sizeof v); }
  // Hashes a text, its length first, so that "ab" + "c" and "a" + "bc" differ.
  Hash& text(const std::string& s) { return number(s.size()).bytes(s.data(), s.size()); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_HASH_H_
