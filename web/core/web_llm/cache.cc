// The state of a Wherry model that WebLLM drives: one sequence, whose pages lie in order.
//
// WebLLM makes a cache, says before each step how many rows the step has, and passes the cache to
// the step. The step's function (compiler/library/web_llm.py) asks the cache for the arrays of the
// batch and for the tensors of the state, which are plain arguments of `forward`.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/tensor.h>

#include <numeric>
#include <string>
#include <vector>

#include "src/runtime/vm/kv_state.h"

namespace {

namespace ffi = tvm::ffi;
using tvm::runtime::Tensor;

constexpr DLDevice kGpu{kDLWebGPU, 0};
constexpr DLDataType kInt32{kDLInt, 32, 1};

// An int32 array on the device, of which a step uses the first elements.
class Numbers {
 public:
  explicit Numbers(int64_t capacity) : tensor_(Tensor::Empty({capacity}, kInt32, kGpu)) {}

  void write(const std::vector<int32_t>& values) {
    size_ = static_cast<int64_t>(values.size());
    if (values == written_) return;
    written_ = values;
    // CopyFromBytes would wait for the device, so the copy is written out here.
    DLTensor from = *tensor_.operator->();
    from.data = written_.data();
    from.device = {kDLCPU, 0};
    from.shape = &size_;
    const Tensor to = first(size_);
    Tensor::CopyFromTo(&from, const_cast<DLTensor*>(to.operator->()));
  }
  Tensor first(int64_t n) const { return tensor_.CreateView({n}, kInt32); }
  Tensor view() const { return first(size_); }

 private:
  Tensor tensor_;
  std::vector<int32_t> written_;
  int64_t size_ = 0;
};

std::vector<int32_t> ascending(int64_t first, int64_t n) {
  std::vector<int32_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), static_cast<int32_t>(first));
  return values;
}

class PagesInOrder : public tvm::runtime::vm::KVStateObj {
 public:
  // metadata: the library's metadata (docs/design/compiled-library.md). tokens: upper bound on the
  // sequence; rows: upper bound on a step.
  PagesInOrder(const ffi::json::Object& metadata, int64_t tokens, int64_t rows)
      : page_(metadata["page_size"].cast<int64_t>()),
        pages_((tokens + page_ - 1) / page_),
        most_rows_(rows),
        positions_(rows),
        sequences_(rows),
        query_indptr_(2),
        page_indptr_(2),
        page_ids_(pages_),
        logit_rows_(1) {
    sequences_.write(std::vector<int32_t>(static_cast<size_t>(rows), 0));
    page_ids_.write(ascending(0, pages_));
    for (const ffi::Any& name : metadata["inputs"].cast<ffi::json::Array>()) {
      inputs_.push_back(name.cast<std::string>());
    }
    for (const ffi::Any& item : metadata["state"].cast<ffi::json::Array>()) {
      add_state(item.cast<ffi::json::Object>());
    }
  }

  void Clear() override {
    length_ = rows_ = 0;
    exists_ = false;
  }
  void AddSequence(int64_t id) override {
    if (id != 0 || exists_) TVM_FFI_THROW(ValueError) << "one sequence, 0, has a place here";
    exists_ = true;
  }
  void RemoveSequence(int64_t id) override {
    check(id);
    Clear();
  }
  void ForkSequence(int64_t, int64_t, int64_t) override {
    TVM_FFI_THROW(ValueError) << "one sequence has a place here: it cannot be forked";
  }
  void PopN(int64_t id, int32_t n) override {
    check(id);
    if (n < 0 || n > length_) {
      TVM_FFI_THROW(ValueError) << n << " tokens to be taken away of " << length_;
    }
    length_ -= n;
  }

  void BeginForward(const ffi::Shape& ids, const ffi::Shape& rows,
                    const ffi::Optional<ffi::Shape>& tree) override {
    if (ids.size() != 1 || rows.size() != 1 || tree.has_value()) {
      TVM_FFI_THROW(ValueError) << "a step is rows of one sequence, without a tree";
    }
    check(ids[0]);
    rows_ = rows[0];
    const int64_t end = length_ + rows_;
    if (rows_ < 1 || rows_ > most_rows_ || end > pages_ * page_) {
      TVM_FFI_THROW(ValueError) << rows_ << " rows after " << length_ << " tokens; a step has 1 to "
                                << most_rows_ << ", the sequence at most " << pages_ * page_;
    }
    positions_.write(ascending(length_, rows_));
    query_indptr_.write({0, static_cast<int32_t>(rows_)});
    page_indptr_.write({0, static_cast<int32_t>((end + page_ - 1) / page_)});
    logit_rows_.write({static_cast<int32_t>(rows_ - 1)});
  }
  void EndForward() override {
    length_ += rows_;
    rows_ = 0;
  }

  // Returns the batch's arrays in the library's order, except the tokens, which the step gets
  // separately.
  ffi::Array<Tensor> batch() const {
    ffi::Array<Tensor> arrays;
    for (const std::string& name : inputs_) {
      if (name == "tokens") continue;
      if (name == "positions") {
        arrays.push_back(positions_.view());
      } else if (name == "sequences") {
        arrays.push_back(sequences_.first(rows_));
      } else if (name == "query_indptr") {
        arrays.push_back(query_indptr_.view());
      } else if (name == "logit_rows") {
        arrays.push_back(logit_rows_.view());
      } else {  // pages.g: all groups share one page table; entries behind a window are not read
        arrays.push_back(page_indptr_.view());
        arrays.push_back(page_ids_.first((length_ + rows_ + page_ - 1) / page_));
      }
    }
    return arrays;
  }
  const ffi::Array<Tensor>& state() const { return state_; }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("wherry.web_llm.PagesInOrder", PagesInOrder,
                                    tvm::runtime::vm::KVStateObj);

 private:
  void check(int64_t id) const {
    if (id != 0 || !exists_) TVM_FFI_THROW(ValueError) << "there is no sequence " << id;
  }
  void add_state(const ffi::json::Object& spec) {
    std::vector<int64_t> shape{pages_};
    for (const ffi::Any& size : spec["shape"].cast<ffi::json::Array>()) {
      shape.push_back(size.cast<int64_t>());
    }
    const DLDataType dtype = ffi::StringToDLDataType(spec["dtype"].cast<ffi::String>());
    for (auto n = spec["layers"].cast<int64_t>(); n > 0; --n) {
      state_.push_back(Tensor::Empty(ffi::Shape(shape), dtype, kGpu));
    }
  }

  int64_t page_, pages_, most_rows_;
  Numbers positions_, sequences_, query_indptr_, page_indptr_, page_ids_, logit_rows_;
  std::vector<std::string> inputs_;
  ffi::Array<Tensor> state_;
  int64_t length_ = 0;  // number of tokens whose rows are in the state
  int64_t rows_ = 0;    // number of rows of the running step
  bool exists_ = false;
};

class Pages : public tvm::runtime::vm::KVState {
 public:
  explicit Pages(ffi::ObjectPtr<PagesInOrder> pages) : KVState(std::move(pages)) {}
};

const PagesInOrder* pages_of(const ffi::ObjectRef& cache) {
  const auto* pages = cache.as<PagesInOrder>();
  if (pages == nullptr) TVM_FFI_THROW(TypeError) << "not a cache of this library";
  return pages;
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      // Creates a cache. WebLLM passes each size as a shape of one element; pages have the
      // library's own size.
      .def("wherry.web_llm.cache",
           [](ffi::Shape sequences, ffi::Shape tokens, ffi::Shape rows, ffi::Shape,
              ffi::Shape window, ffi::String metadata) -> ffi::ObjectRef {
             if (sequences[0] != 1 || window[0] != 0) {
               TVM_FFI_THROW(ValueError) << "a cache of one sequence, whose model says its window";
             }
             auto parsed = ffi::json::Parse(metadata).cast<ffi::json::Object>();
             return Pages(ffi::make_object<PagesInOrder>(parsed, tokens[0], rows[0]));
           })
      .def("wherry.web_llm.batch", [](ffi::ObjectRef cache) { return pages_of(cache)->batch(); })
      .def("wherry.web_llm.state", [](ffi::ObjectRef cache) { return pages_of(cache)->state(); });
}
