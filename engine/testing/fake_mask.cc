#include "testing/fake_mask.h"

#include <algorithm>

#include "sampling/rng.h"

namespace wherry {

std::atomic<int> FakeMask::alive{0};

FakeMask::FakeMask(int64_t vocab, uint64_t seed, int length, int fail_at)
    : vocab_(vocab), seed_(seed), length_(length), fail_at_(fail_at) {}

wherry_mask FakeMask::make(int64_t vocab, uint64_t seed, int length, int fail_at) {
  ++alive;
  wherry_mask mask{};
  mask.size = sizeof mask;
  mask.context = new FakeMask(vocab, seed, length, fail_at);
  mask.fill = fill;
  mask.accept = accept;
  mask.forced = forced;
  mask.error = error;
  mask.release = release;
  return mask;
}

std::set<int32_t> FakeMask::allowed() const {
  uint64_t state = splitmix64(seed_, static_cast<uint32_t>(last_));
  std::set<int32_t> tokens;
  if (state % 3 == 0) {
    return {static_cast<int32_t>(splitmix64(state, 1) % static_cast<uint64_t>(vocab_))};
  }
  for (int64_t t = 0; t < vocab_; ++t) {
    if (splitmix64(state, static_cast<uint64_t>(t)) % 4 != 0)
      tokens.insert(static_cast<int32_t>(t));
  }
  return tokens;
}

int FakeMask::fill(void* self, uint32_t* bits, size_t words, int* all) {
  auto& mask = *static_cast<FakeMask*>(self);
  if (mask.fills_++ == mask.fail_at_) return -1;
  *all = 0;
  std::fill(bits, bits + words, 0);
  for (int32_t token : mask.allowed()) bits[token / 32] |= 1u << (token % 32);
  return 0;
}

int FakeMask::accept(void* self, int32_t token, int* complete) {
  auto& mask = *static_cast<FakeMask*>(self);
  if (mask.allowed().count(token) == 0) return -1;
  mask.last_ = token;
  *complete = ++mask.accepted_ == mask.length_;
  return 0;
}

int FakeMask::forced(void* self, int32_t* tokens, size_t cap, size_t* n) {
  FakeMask ahead = *static_cast<FakeMask*>(self);
  for (*n = 0; *n < cap; ++*n) {
    std::set<int32_t> allowed = ahead.allowed();
    if (allowed.size() != 1) return 0;
    tokens[*n] = ahead.last_ = *allowed.begin();
  }
  return 0;
}

const char* FakeMask::error(void*) { return "the grammar is lost"; }

void FakeMask::release(void* self) {
  --alive;
  delete static_cast<FakeMask*>(self);
}

}  // namespace wherry
