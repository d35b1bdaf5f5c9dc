#include "scheduling/request_mask.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace wherry {

RequestMask::RequestMask(const wherry_mask& mask, int64_t vocab)
    : bits_(static_cast<size_t>((vocab + 31) / 32)) {
  std::memcpy(&mask_, &mask, std::min(mask.size, sizeof mask_));
  if (mask_.fill != nullptr && mask_.accept != nullptr) return;
  if (mask_.release != nullptr) mask_.release(mask_.context);
  throw Error(WHERRY_INVALID_ARGUMENT, "mask.fill and mask.accept must be set, and mask.size too");
}

RequestMask::~RequestMask() {
  if (mask_.release != nullptr) mask_.release(mask_.context);
}

void RequestMask::check(int status, const char* what) {
  if (status >= 0) return;
  const char* reason = mask_.error == nullptr ? nullptr : mask_.error(mask_.context);
  throw Error(WHERRY_INTERNAL, concat("the request's mask failed to ", what, ": ",
                                      reason == nullptr ? "it gave no reason" : reason));
}

const uint32_t* RequestMask::bits() {
  if (!filled_) {
    int all = 0;
    check(mask_.fill(mask_.context, bits_.data(), bits_.size(), &all), "fill its mask");
    filled_ = true;
    all_ = all != 0;
  }
  return all_ ? nullptr : bits_.data();
}

bool RequestMask::accept(int32_t token) {
  int complete = 0;
  filled_ = false;
  check(mask_.accept(mask_.context, token, &complete), "take a token");
  return complete != 0;
}

std::vector<int32_t> RequestMask::forced(int64_t most) {
  if (mask_.forced == nullptr || most <= 0) return {};
  std::vector<int32_t> tokens(static_cast<size_t>(most));
  size_t n = 0;
  check(mask_.forced(mask_.context, tokens.data(), tokens.size(), &n), "say what must come next");
  tokens.resize(std::min(n, tokens.size()));
  return tokens;
}

}  // namespace wherry
