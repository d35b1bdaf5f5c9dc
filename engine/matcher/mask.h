// Implements the C ABI's wherry_mask with a grammar matcher.
#ifndef WHERRY_ENGINE_MATCHER_MASK_H_
#define WHERRY_ENGINE_MATCHER_MASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "matcher/matcher.h"
#include "wherry.h"

namespace wherry {

// The grammar mask of one request. It is computed once for each state of the grammar, by `forced`
// before a step is planned, or by `fill` while the device computes. The device is idle during
// `forced`, which therefore computes the mask only if forced tokens are likely.
class Mask {
 public:
  Mask(std::unique_ptr<Matcher> matcher, std::vector<int32_t> stop_ids);

  // Implement the functions of wherry_mask; they return false on failure, and error() says why.
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
  // Whether the current mask allows many tokens.
  bool is_wide() const;
  // Returns the only allowed token if the text must not end here; -1 if none or several are
  // allowed.
  int32_t only() const;

  std::unique_ptr<Matcher> matcher_;
  std::vector<int32_t> stop_ids_;
  std::vector<uint32_t> bits_;  // mask of the current state if computed_ is true
  bool computed_ = false;
  bool wide_ = false;  // true if the last mask allowed many tokens
  std::string error_;
};

// Returns a wherry_mask record whose `release` deletes the mask.
wherry_mask mask_record(std::unique_ptr<Mask> mask);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MATCHER_MASK_H_
