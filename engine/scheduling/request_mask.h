// A caller's wherry_mask for one request: asked once a token, released once.
#ifndef WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_
#define WHERRY_ENGINE_SCHEDULING_REQUEST_MASK_H_

#include <cstdint>
#include <vector>

#include "wherry.h"

namespace wherry {

class RequestMask {
 public:
  // Takes over `mask`: releases it at the end, also if this throws.
  RequestMask(const wherry_mask& mask, int64_t vocab);
  ~RequestMask();
  RequestMask(const RequestMask&) = delete;
  RequestMask& operator=(const RequestMask&) = delete;

  // Bit t % 32 of word t / 32 says whether token t may come next; null: all may. Computed at the
  // first call after a token. Throws WHERRY_INTERNAL with the provider's reason.
  const uint32_t* bits();
  // A token has come; true: the output ends with it.
  bool accept(int32_t token);
  // Tokens that must come next, at most `most`.
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
