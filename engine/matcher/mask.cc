#include "matcher/mask.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "matcher/llguidance.h"
#include "support/error.h"

namespace wherry {
namespace {

constexpr size_t kWordBits = 32;
// If more words of a mask than this are nonzero, the text is inside a string or similar, where
// tokens are rarely forced and masks are the most expensive.
constexpr size_t kWide = 64;

bool bit(const std::vector<uint32_t>& bits, size_t index) {
  return index / kWordBits < bits.size() && (bits[index / kWordBits] >> index % kWordBits & 1) != 0;
}

Mask& of(void* context) { return *static_cast<Mask*>(context); }

// Runs `call` and turns exceptions into an error status, which ends the request.
template <typename Call>
int guarded(const Call& call) noexcept {
  try {
    return call() ? 0 : -1;
  } catch (...) {
    return -1;
  }
}

int record_fill(void* context, uint32_t* bits, size_t words, int* all) {
  *all = 0;
  return guarded([&] { return of(context).fill(bits, words); });
}

int record_accept(void* context, int32_t token, int* complete) {
  return guarded([&] {
    bool done = false;
    const bool taken = of(context).accept(token, &done);
    *complete = done ? 1 : 0;
    return taken;
  });
}

int record_forced(void* context, int32_t* tokens, size_t cap, size_t* n) {
  return guarded([&] { return of(context).forced(tokens, cap, n); });
}

const char* record_error(void* context) { return of(context).error().c_str(); }

void record_release(void* context) { delete static_cast<Mask*>(context); }

}  // namespace

Mask::Mask(std::unique_ptr<Matcher> matcher, std::vector<int32_t> stop_ids)
    : matcher_(std::move(matcher)), stop_ids_(std::move(stop_ids)), bits_(matcher_->words()) {}

bool Mask::fill(uint32_t* bits, size_t words) {
  if (!compute()) return false;
  const size_t size = matcher_->tokens();
  const size_t taken = std::min(words, (size + kWordBits - 1) / kWordBits);
  std::copy_n(bits_.begin(), taken, bits);
  std::fill(bits + taken, bits + words, 0u);
  // Clears the bit that stands for the text's end, because it is no token.
  if (taken * kWordBits > size) {
    bits[taken - 1] &= (1u << size % kWordBits) - 1;
  }
  const bool end = may_end();
  for (int32_t stop : stop_ids_) {
    const size_t word = static_cast<size_t>(stop) / kWordBits;
    if (stop < 0 || word >= words) continue;
    const uint32_t flag = 1u << static_cast<size_t>(stop) % kWordBits;
    bits[word] = end ? bits[word] | flag : bits[word] & ~flag;
  }
  if (std::all_of(bits, bits + words, [](uint32_t word) { return word == 0; })) {
    return fail(end ? "the text is complete, and the request has no stop token that could end it"
                    : "no token of the model can continue the text");
  }
  return true;
}

bool Mask::accept(int32_t token, bool* complete) {
  if (is_stop(token)) {
    *complete = true;
    return matcher_->accepting() || fail(concat("stop token ", token, " in an incomplete text"));
  }
  computed_ = false;
  if (!matcher_->accept(static_cast<uint32_t>(token))) return fail();
  *complete = matcher_->stopped();
  return true;
}

bool Mask::forced(int32_t* tokens, size_t cap, size_t* n) {
  *n = 0;
  if (!computed_ && wide_) return true;
  if (!compute()) return false;
  if (only() < 0 || cap == 0) return true;
  std::vector<uint32_t> present = bits_;
  for (int32_t token = only(); token >= 0 && *n < cap; token = only()) {
    if (!matcher_->accept(static_cast<uint32_t>(token))) return fail();
    tokens[(*n)++] = token;
    computed_ = false;
    if (matcher_->stopped() || *n == cap) break;
    if (!compute()) return false;
  }
  if (!matcher_->rollback(*n)) return fail();
  bits_ = std::move(present);
  computed_ = true;
  wide_ = false;
  return true;
}

bool Mask::compute() {
  if (computed_) return true;
  if (matcher_->error() != nullptr) return fail();
  if (matcher_->stopped()) {  // llguidance has no mask after the end of the text
    std::fill(bits_.begin(), bits_.end(), 0u);
    const size_t end = matcher_->tokens();
    bits_[end / kWordBits] |= 1u << end % kWordBits;
  } else if (!matcher_->fill(bits_.data())) {
    return fail();
  }
  computed_ = true;
  wide_ = is_wide();
  return true;
}

bool Mask::is_wide() const {
  size_t words = 0;
  for (uint32_t word : bits_) words += word != 0;
  return words > kWide;
}

bool Mask::fail() {
  const char* reason = matcher_->error();
  return fail(reason == nullptr ? "the grammar refused a token that its mask allowed" : reason);
}

bool Mask::fail(std::string reason) {
  error_ = "structured output: " + reason.substr(0, reason.find(kLlgNoise));
  return false;
}

bool Mask::is_stop(int32_t token) const {
  return std::find(stop_ids_.begin(), stop_ids_.end(), token) != stop_ids_.end();
}

bool Mask::may_end() const { return bit(bits_, matcher_->tokens()); }

int32_t Mask::only() const {
  int32_t token = -1;
  for (size_t word = 0; word < bits_.size(); ++word) {
    const uint32_t value = bits_[word];
    if (value == 0) continue;
    if (token >= 0 || (value & (value - 1)) != 0) return -1;
    size_t shift = 0;
    while ((value >> shift & 1) == 0) ++shift;
    token = static_cast<int32_t>(word * kWordBits + shift);
  }
  const bool end = token == static_cast<int32_t>(matcher_->tokens());
  return end || is_stop(token) ? -1 : token;
}

wherry_mask mask_record(std::unique_ptr<Mask> mask) {
  wherry_mask record{};
  record.size = sizeof(record);
  record.context = mask.release();
  record.fill = record_fill;
  record.accept = record_accept;
  record.forced = record_forced;
  record.error = record_error;
  record.release = record_release;
  return record;
}

}  // namespace wherry
