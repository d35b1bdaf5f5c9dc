// A vocabulary: maps token names to ids and back.
#ifndef WHERRY_APP_TEXT_MODEL_VOCABULARY_H_
#define WHERRY_APP_TEXT_MODEL_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::text {

uint64_t hash_of(std::string_view text);

// Maps token names to ids and back. All names share one string; a quarter of a million tokens take
// some 10 MB.
class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;

  // Adds a token; an existing name gets the new id.
  void add(std::string_view token, int32_t id);
  // Releases spare capacity; no call of `add` may follow.
  void finish();

  int32_t find(std::string_view token) const;  // returns kNone if the token does not exist
  std::optional<std::string_view> token(int32_t id) const;
  size_t size() const { return entries_.size(); }
  int32_t largest_id() const { return static_cast<int32_t>(by_id_.size()) - 1; }
  size_t longest() const { return longest_; }  // bytes

 private:
  struct Entry {
    uint32_t offset, length;
    int32_t id;
  };
  struct Slot {
    uint32_t tag, entry;  // entry + 1; an entry of 0 marks an empty slot
  };
  std::string_view name(const Entry& entry) const {
    return std::string_view(names_).substr(entry.offset, entry.length);
  }
  size_t slot_of(std::string_view token, uint64_t hash) const;
  void grow();

  std::string names_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;      // hash table; its size is a power of two
  std::vector<uint32_t> by_id_;  // entry + 1 of each id; 0 for ids without a token
  size_t longest_ = 0;
};

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_MODEL_VOCABULARY_H_
