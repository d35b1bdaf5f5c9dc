// A hash table from pairs of tokens to the merged token and its rank.
#ifndef WHERRY_APP_TEXT_MODEL_MERGES_H_
#define WHERRY_APP_TEXT_MODEL_MERGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::text {

class Merges {
 public:
  struct Merge {
    int32_t left = -1, right = -1;
    uint32_t rank = 0;
    int32_t merged = -1;
  };

  void reserve(size_t n) { slots_.assign(n + n / 2 + 1, Merge()); }
  // Adds a merge; for equal pairs, the last rank wins. The caller must have reserved enough slots.
  void add(const Merge& merge) { slots_[slot_of(merge.left, merge.right)] = merge; }
  // Returns nullptr if the pair is not merged.
  const Merge* find(int32_t left, int32_t right) const {
    if (slots_.empty()) return nullptr;
    const Merge& merge = slots_[slot_of(left, right)];
    return merge.left < 0 ? nullptr : &merge;
  }

 private:
  size_t slot_of(int32_t left, int32_t right) const {
    uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15u;
    // Scales the hash's upper half to the table's size, which need not be a power of two.
    size_t at = static_cast<size_t>((key >> 32) * slots_.size() >> 32);
    for (;; at = at + 1 == slots_.size() ? 0 : at + 1) {
      const Merge& merge = slots_[at];
      if (merge.left < 0 || (merge.left == left && merge.right == right)) return at;
    }
  }

  std::vector<Merge> slots_;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_MERGES_H_
