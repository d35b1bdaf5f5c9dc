// Wraps a caller's wherry_mask (grammar) for one request: calls it once per token and releases it
// once.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_

#include <cstdint>
#include <vector>

#include "wherry.h"

namespace wherry {

class RequestMask {
 public:
  // Takes ownership of `mask`: releases it in the destructor, also if this constructor throws.
  RequestMask(const wherry_mask& mask, int64_t vocab);
  ~RequestMask();
  RequestMask(const RequestMask&) = delete;
  RequestMask& operator=(const RequestMask&) = delete;

  // Returns a bit set: bit t % 32 of word t / 32 says whether token t is allowed next; null if all
  // tokens are. The first call after a token computes it. Throws WHERRY_INTERNAL with the mask
  // provider's reason.
  const uint32_t* bits();
  // Advances the grammar by one token. Returns true if the output ends with that token.
  bool accept(int32_t token);
  // Returns the tokens that the grammar forces next, at most `most`.
  std::vector<int32_t> forced(int64_t most);

 private:
  void check(int status, const char* what);

  wherry_mask mask_{};
  std::vector<uint32_t> bits_;
  bool filled_ = false;
  bool all_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_
