#include "model/vm_candidates.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/error.h"

namespace wherry {

namespace {

// Of a row, behind its ids and logits; see targets/kernels/gpu/candidates.py.
enum Tail { kFound, kTotal, kScaledTotal, kValid, kTail };

constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDataType kUint32{kDLUInt, 32, 1};

double as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

VmCandidates::VmCandidates(ffi::Function function, const Metadata& metadata, int64_t logit_rows,
                           DLDevice device)
    : function_(std::move(function)),
      count_(metadata.candidates),
      vocab_(metadata.vocab_size),
      relative_error_(metadata.candidates_error),
      scales_(logit_rows, kFloat32, device) {}

ffi::Tensor VmCandidates::launch(const ffi::Tensor& logits, const std::vector<float>& scales) {
  std::vector<float> wanted = scales;
  std::replace(wanted.begin(), wanted.end(), 0.0f, 1.0f);
  if (wanted != used_) {  // steps of the same requests have the same: nothing goes to the device
    used_.clear();
    scales_there_ = scales_.view(wanted);
    used_ = std::move(wanted);
  }
  return function_(logits, scales_there_).cast<ffi::Tensor>();
}

std::vector<Candidates> VmCandidates::read(const ffi::Tensor& host, int64_t rows) {
  const int64_t columns = 2 * count_ + kTail;
  const std::string has = describe(host.dtype(), shape_of(host));
  const std::string wanted = describe(kUint32, {rows, columns});
  if (has != wanted || !host.IsContiguous()) {
    throw Error(WHERRY_INCOMPATIBLE, concat("candidates returned ", has, ", not ", wanted));
  }
  host_ = host;
  const auto* first = reinterpret_cast<const uint32_t*>(bytes_of(host));
  logits_.resize(static_cast<size_t>(rows * count_));
  std::vector<Candidates> result;
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t* ids = first + row * columns;
    const uint32_t* tail = ids + 2 * count_;
    float* logits = logits_.data() + row * count_;
    std::memcpy(logits, ids + count_, static_cast<size_t>(count_) * sizeof(float));
    int64_t found = tail[kValid] != 0 ? std::min<int64_t>(tail[kFound], count_) : 0;
    result.push_back({reinterpret_cast<const int32_t*>(ids), logits, found, vocab_,
                      as_float(tail[kTotal]), as_float(tail[kScaledTotal]), relative_error_,
                      static_cast<int32_t>(ids[0])});
  }
  return result;
}

}  // namespace wherry
