#include "app/text/model/vocabulary.h"

#include <algorithm>
#include <cstring>

namespace wherry::text {

// Hashes a text fast, for our own tables; collisions only cost time.
uint64_t hash_of(std::string_view text) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  uint64_t hash = text.size() * kFactor;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  }
  uint64_t rest = 0;
  for (; at < text.size(); ++at) rest = rest << 8 | static_cast<unsigned char>(text[at]);
  hash = (hash ^ rest) * kFactor;
  hash ^= hash >> 32;
  hash *= kFactor;
  return hash ^ hash >> 29;
}

size_t Vocabulary::slot_of(std::string_view token, uint64_t hash) const {
  size_t mask = slots_.size() - 1, at = hash & mask;
  auto tag = static_cast<uint32_t>(hash >> 32);
  for (;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.entry == 0) return at;
    if (slot.tag == tag && name(entries_[slot.entry - 1]) == token) return at;
  }
}

void Vocabulary::grow() {
  std::vector<Slot> old(std::max<size_t>(64, slots_.size() * 2));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.entry == 0) continue;
    size_t at = hash_of(name(entries_[slot.entry - 1])) & (slots_.size() - 1);
    while (slots_[at].entry != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void Vocabulary::add(std::string_view token, int32_t id) {
  if (entries_.size() * 3 >= slots_.size() * 2) grow();
  uint64_t hash = hash_of(token);
  Slot& slot = slots_[slot_of(token, hash)];
  if (slot.entry == 0) {
    auto offset = static_cast<uint32_t>(names_.size());
    names_ += token;
    entries_.push_back({offset, static_cast<uint32_t>(token.size()), id});
    slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(entries_.size())};
    longest_ = std::max(longest_, token.size());
  }
  entries_[slot.entry - 1].id = id;
  if (static_cast<size_t>(id) >= by_id_.size()) by_id_.resize(static_cast<size_t>(id) + 1);
  by_id_[static_cast<size_t>(id)] = slot.entry;
}

void Vocabulary::finish() {
  names_.shrink_to_fit();
  entries_.shrink_to_fit();
  by_id_.shrink_to_fit();
}

int32_t Vocabulary::find(std::string_view token) const {
  if (entries_.empty()) return kNone;
  const Slot& slot = slots_[slot_of(token, hash_of(token))];
  return slot.entry == 0 ? kNone : entries_[slot.entry - 1].id;
}

std::optional<std::string_view> Vocabulary::token(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= by_id_.size()) return std::nullopt;
  uint32_t entry = by_id_[static_cast<size_t>(id)];
  if (entry == 0) return std::nullopt;
  return name(entries_[entry - 1]);
}

}  // namespace wherry::text
