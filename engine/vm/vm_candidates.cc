#include "vm/vm_candidates.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/error.h"

namespace wherry {

namespace {

// Columns of a packed row after its ids and logits; see targets/kernels/gpu/candidates.py.
enum Tail { kCount, kTotal, kScaledTotal, kValid, kTail };
constexpr int64_t kHow = 5;  // numbers that describe each choice; see targets/kernels/gpu/choice.py

constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDataType kUint32{kDLUInt, 32, 1};

double as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

VmCandidates::VmCandidates(ffi::Function function, ffi::Optional<ffi::Function> choice,
                           const Metadata& metadata, int64_t logit_rows, DLDevice device)
    : function_(std::move(function)),
      choice_(std::move(choice)),
      count_(metadata.candidates),
      vocab_(metadata.vocab_size),
      relative_error_(metadata.candidates_error),
      scales_(logit_rows, kFloat32, device),
      choices_(logit_rows * kHow, kFloat32, device) {}

bool VmCandidates::stage(const std::vector<float>& scales, const std::vector<Choice>& choices) {
  std::vector<float> nonzero = scales;
  std::replace(nonzero.begin(), nonzero.end(), 0.0f, 1.0f);
  if (nonzero != used_) {  // steps of the same requests have equal scales, so the copy is skipped
    used_.clear();
    device_scales_ = scales_.view(nonzero);
    used_ = std::move(nonzero);
  }
  bool most_likely = std::all_of(choices.begin(), choices.end(),
                                 [](const Choice& choice) { return choice.most_likely(); });
  if (most_likely || !choice_.has_value()) return false;
  std::vector<float> how;
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    how.insert(how.end(), {used_[i], choice.place, static_cast<float>(choice.top_k), choice.top_p,
                           choice.min_p});
  }
  const int64_t shape[] = {static_cast<int64_t>(choices.size()), kHow}, strides[] = {kHow, 1};
  device_choices_ =
      choices_.view(how).as_strided(ffi::ShapeView(shape, 2), ffi::ShapeView(strides, 2));
  return true;
}

void VmCandidates::copy_by(StepCopies& copies) {
  scales_.copy_by(copies);
  choices_.copy_by(copies);
}

CopySizes VmCandidates::sizes() const {
  const size_t rows = scales_.bytes() / sizeof(float);
  const auto columns = static_cast<size_t>(2 * count_ + kTail + 1);
  return {scales_.bytes() + choices_.bytes() + 2 * kAlignment, rows * columns * sizeof(uint32_t)};
}

ffi::Tensor VmCandidates::launch(const ffi::Tensor& logits, bool drawn) {
  auto packed = function_(logits, device_scales_).cast<ffi::Tensor>();
  return drawn ? (*choice_)(packed, device_choices_).cast<ffi::Tensor>() : packed;
}

// Returns the column of a row's token: a drawn token is in the last column, the most likely token
// in the first one.
int64_t VmCandidates::chosen_at(const ffi::Tensor& packed, int64_t row) {
  const int64_t columns = packed.size(1);
  return row * columns + (columns % 2 == 0 ? 0 : columns - 1);
}

std::vector<Candidates> VmCandidates::read(const ffi::Tensor& host, int64_t rows) {
  const bool drawn = host.ndim() == 2 && host.size(1) % 2 != 0;
  const int64_t columns = 2 * count_ + kTail + (drawn ? 1 : 0);
  const std::string has = describe(host.dtype(), shape_of(host));
  const std::string expected = describe(kUint32, {rows, columns});
  if (has != expected || !host.IsContiguous()) {
    throw Error(WHERRY_INCOMPATIBLE, concat("candidates returned ", has, ", not ", expected));
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
    int64_t count = tail[kValid] != 0 ? std::min<int64_t>(tail[kCount], count_) : 0;
    result.push_back({reinterpret_cast<const int32_t*>(ids), logits, count, vocab_,
                      as_float(tail[kTotal]), as_float(tail[kScaledTotal]), relative_error_,
                      static_cast<int32_t>(first[chosen_at(host, row)])});
  }
  return result;
}

}  // namespace wherry
