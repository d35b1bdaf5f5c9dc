// wherry_mask over a matcher.
#ifndef WHERRY_ENGINE_GRAMMAR_MASK_H_
#define WHERRY_ENGINE_GRAMMAR_MASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/matcher.h"
#include "wherry.h"

namespace wherry {

// What one request may say next. The mask of the present state is computed once, whoever asks
// first: `forced` before a step is planned, or `fill` while the device computes. The device waits
// for `forced`, which therefore looks only where something is likely to be forced.
class Mask {
 public:
  Mask(std::unique_ptr<Matcher> matcher, std::vector<int32_t> stop_ids);

  // The functions of wherry_mask; false: error().
  bool fill(uint32_t* bits, size_t words);
  bool accept(int32_t token, bool* complete);
  bool forced(int32_t* tokens, size_t cap, size_t* n);
  const std::string& error() const { return error_; }

 private:
  bool compute();
  bool fail();
  bool fail(std::string reason);
  bool is_stop(int32_t token) const;
  bool may_end() const;
  // Whether many tokens may come.
  bool is_wide() const;
  // The one token that may come, and no end; -1: several, or none.
  int32_t only() const;

  std::unique_ptr<Matcher> matcher_;
  std::vector<int32_t> stop_ids_;
  std::vector<uint32_t> bits_;  // of the present state if computed_
  bool computed_ = false;
  bool wide_ = false;  // the newest mask allowed many tokens
  std::string error_;
};

// A record whose `release` frees the mask.
wherry_mask mask_record(std::unique_ptr<Mask> mask);

}  // namespace wherry

#endif  // WHERRY_ENGINE_GRAMMAR_MASK_H_
