#include "model/vm_session.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "model/threads.h"
#include "model/virtual_machine.h"
#include "support/error.h"

namespace wherry {

namespace {

constexpr DLDataType kInt32{kDLInt, 32, 1};

// An int32 buffer on the device, and views of its first elements.
class Staging {
 public:
  Staging(int64_t capacity, DLDevice device)
      : host_(allocate_host({capacity}, kInt32)), there_(to_device(host_, device)) {}

  ffi::Tensor view(const std::vector<int32_t>& values) {
    auto n = static_cast<int64_t>(values.size());
    if (n > host_.size(0)) {
      throw Error(WHERRY_INTERNAL, concat("a batch has ", n,
                                          " elements; the session was opened for ", host_.size(0)));
    }
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(host_.data_ptr()));
    ffi::Tensor here = prefix(host_, n);
    if (is_host(there_.device())) return here;
    ffi::Tensor there = prefix(there_, n);
    ffi::Function::GetGlobalRequired("runtime.TVMTensorCopyFromTo")(here, there);
    return there;
  }

 private:
  static ffi::Tensor prefix(const ffi::Tensor& tensor, int64_t n) {
    const int64_t stride = 1;
    return tensor.as_strided(ffi::ShapeView(&n, 1), ffi::ShapeView(&stride, 1));
  }

  ffi::Tensor host_, there_;
};

// TVM's pooled allocator keeps a freed buffer of each size it ever saw, and the sizes follow the
// number of rows: after many different ones it is told to give them back.
class AllocatorTrimmer {
 public:
  void before_step(size_t rows) {
    constexpr size_t kDifferentSizes = 64;
    if (!seen_.insert(rows).second || seen_.size() <= kDifferentSizes) return;
    seen_ = {rows};
    auto clear = ffi::Function::GetGlobal("vm.builtin.memory_manager.clear");
    if (clear.has_value()) (*clear)();
  }

 private:
  std::set<size_t> seen_;
};

constexpr size_t kBatchArrays = 7;

class VmSession : public Session {
 public:
  VmSession(std::shared_ptr<const VmShared> shared, const SessionLimits& limits)
      : shared_(std::move(shared)),
        vm_(shared_->executable, shared_->device),
        forward_(vm_.function("forward")),
        tokens_(limits.rows, shared_->device),
        positions_(limits.rows, shared_->device),
        sequences_(limits.rows, shared_->device),
        query_indptr_(limits.sequences + 1, shared_->device),
        page_indptr_(limits.sequences + 1, shared_->device),
        page_ids_(limits.page_ids, shared_->device),
        logit_rows_(limits.rows, shared_->device) {
    for (const StateSpec& spec : shared_->metadata.state) {
      std::vector<int64_t> shape = spec.page_shape;
      shape.insert(shape.begin(), limits.pages);
      for (int64_t layer = 0; layer < spec.layers; ++layer) {
        state_.push_back(allocate(shape, spec.dtype, shared_->device));
      }
    }
    // The arrays of a batch come first and change at each step; state and parameters stay.
    arguments_.resize(kBatchArrays);
    arguments_.insert(arguments_.end(), state_.begin(), state_.end());
    arguments_.insert(arguments_.end(), shared_->params.begin(), shared_->params.end());
  }

  void launch(const Batch& batch) override {
    configure_kernel_threads(shared_->threads);
    trimmer_.before_step(batch.tokens.size());
    logits_ = ffi::Tensor();
    rows_ = static_cast<int64_t>(batch.logit_rows.size());
    const ffi::Tensor inputs[] = {
        tokens_.view(batch.tokens),           positions_.view(batch.positions),
        sequences_.view(batch.sequences),     query_indptr_.view(batch.query_indptr),
        page_indptr_.view(batch.page_indptr), page_ids_.view(batch.page_ids),
        logit_rows_.view(batch.logit_rows)};
    std::copy(std::begin(inputs), std::end(inputs), arguments_.begin());
    ffi::Any result;
    forward_.CallPacked(arguments_.data(), static_cast<int>(arguments_.size()), &result);
    logits_ = std::move(result).cast<ffi::Tensor>();
  }

  Logits collect() override {
    if (!logits_.defined()) throw Error(WHERRY_INTERNAL, "collect without a launch");
    logits_ = to_host(logits_);
    const int64_t vocab = shared_->metadata.vocab_size;
    const std::string has = describe(logits_.dtype(), shape_of(logits_));
    const std::string wanted = describe(DLDataType{kDLFloat, 32, 1}, {rows_, vocab});
    if (has != wanted || !logits_.IsContiguous()) {
      throw Error(WHERRY_INCOMPATIBLE, concat("forward returned ", has, ", not ", wanted));
    }
    const char* data = static_cast<const char*>(logits_.data_ptr()) + logits_.byte_offset();
    return {reinterpret_cast<const float*>(data), rows_, vocab};
  }

 private:
  std::shared_ptr<const VmShared> shared_;
  VirtualMachine vm_;
  ffi::Function forward_;
  Staging tokens_, positions_, sequences_, query_indptr_, page_indptr_, page_ids_, logit_rows_;
  std::vector<ffi::Tensor> state_;
  std::vector<ffi::AnyView> arguments_;  // of `forward`, in order
  AllocatorTrimmer trimmer_;
  ffi::Tensor logits_;  // holds the memory that collect() points into
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Session> open_vm_session(std::shared_ptr<const VmShared> shared,
                                         const SessionLimits& limits) {
  return std::make_unique<VmSession>(std::move(shared), limits);
}

}  // namespace wherry
