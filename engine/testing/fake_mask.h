// A grammar mask for tests: the allowed tokens are a function of the seed and the previous token.
#ifndef WHERRY_ENGINE_TESTING_FAKE_MASK_H_
#define WHERRY_ENGINE_TESTING_FAKE_MASK_H_

#include <atomic>
#include <cstdint>
#include <set>

#include "wherry.h"

namespace wherry {

class FakeMask {
 public:
  // About every third token forces its successor; the output is complete after `length` tokens.
  // fail_at: index of the fill call that fails; -1 for none.
  FakeMask(int64_t vocab, uint64_t seed, int length, int fail_at = -1);

  // Creates a mask and returns its wherry_mask record, whose `release` deletes the mask.
  static wherry_mask make(int64_t vocab, uint64_t seed, int length, int fail_at = -1);

  std::set<int32_t> allowed() const;

  static std::atomic<int> alive;  // number of masks that were not released yet

 private:
  static int fill(void* self, uint32_t* bits, size_t words, int* all);
  static int accept(void* self, int32_t token, int* complete);
  static int forced(void* self, int32_t* tokens, size_t cap, size_t* n);
  static const char* error(void* self);
  static void release(void* self);

  int64_t vocab_;
  uint64_t seed_;
  int length_, fail_at_;
  int32_t last_ = -1;
  int accepted_ = 0, fills_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_MASK_H_
