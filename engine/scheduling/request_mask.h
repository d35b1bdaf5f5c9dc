// A caller's wherry_mask for one request; called once for each token and released once.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_

#include <cstdint>
#include <vector>

#include "wherry.h"

namespace wherry {

class RequestMask {
 public:
  // Takes ownership of `mask`: releases it at the end, also if this constructor throws.
  RequestMask(const wherry_mask& mask, int64_t vocab);
  ~RequestMask();
  RequestMask(const RequestMask&) = delete;
  RequestMask& operator=(const RequestMask&) = delete;

  // Bit t % 32 of word t / 32 says whether token t is allowed next; null: all are. The first call
  // after a token computes it. Throws WHERRY_INTERNAL with the provider's reason.
  const uint32_t* bits();
  // Advances by one token. Returns true if the output ends with it.
  bool accept(int32_t token);
  // The tokens that the grammar forces next, at most `most`.
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
