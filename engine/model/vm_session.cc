#include "model/vm_session.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
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
    release_pooled_memory();
  }

 private:
  std::set<size_t> seen_;
};

// The arrays of a batch that a library takes, in its order.
class Inputs {
 public:
  Inputs(const Metadata& metadata, const SessionLimits& limits, DLDevice device) {
    for (const std::string& name : metadata.inputs) add(name, limits, device);
  }

  size_t size() const { return arrays_.size(); }

  // Writes them to the device, and their views to `arguments`.
  void fill(const Batch& batch, std::vector<ffi::AnyView>& arguments) {
    views_.clear();
    for (Array& array : arrays_) views_.push_back(array.staging.view(array.of(batch)));
    std::copy(views_.begin(), views_.end(), arguments.begin());
  }

 private:
  using Field = std::function<const std::vector<int32_t>&(const Batch&)>;
  struct Array {
    Field of;
    Staging staging;
  };

  void add(const std::string& name, const SessionLimits& limits, DLDevice device) {
    auto plain = [&](std::vector<int32_t> Batch::* field, int64_t capacity) {
      arrays_.push_back(
          {[field](const Batch& b) -> const auto& { return b.*field; }, Staging(capacity, device)});
    };
    const int64_t n = limits.rows, r = limits.sequences;
    if (name == "tokens") return plain(&Batch::tokens, n);
    if (name == "positions") return plain(&Batch::positions, n);
    if (name == "sequences") return plain(&Batch::sequences, n);
    if (name == "adapters") return plain(&Batch::adapters, n);
    if (name == "query_indptr") return plain(&Batch::query_indptr, r + 1);
    if (name == "slots") return plain(&Batch::slots, r);
    if (name == "source_lengths") return plain(&Batch::source_lengths, r);
    if (name == "logit_rows") return plain(&Batch::logit_rows, limits.logit_rows);
    size_t group = std::stoul(name.substr(name.find('.') + 1));  // "pages.0": see parse_metadata
    arrays_.push_back({[group](const Batch& b) -> const auto& { return b.pages[group].indptr; },
                       Staging(r + 1, device)});
    arrays_.push_back({[group](const Batch& b) -> const auto& { return b.pages[group].ids; },
                       Staging(limits.page_ids[group], device)});
  }

  std::vector<Array> arrays_;
  std::vector<ffi::Tensor> views_;
};

// Where the bytes of page or slot `i` of a state tensor [count, ...] begin, and how many they are.
ffi::Tensor part_of(const ffi::Tensor& tensor, int64_t i) {
  std::vector<int64_t> shape = shape_of(tensor), strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  shape[0] = 1;
  return tensor.as_strided(ffi::ShapeView(shape.data(), shape.size()),
                           ffi::ShapeView(strides.data(), strides.size()), i * strides[0]);
}

void copy(const ffi::Tensor& from, const ffi::Tensor& to) {
  static const ffi::Function between =
      ffi::Function::GetGlobalRequired("runtime.TVMTensorCopyFromTo");
  between(from, to);
}

class VmSession : public Session {
 public:
  VmSession(std::shared_ptr<const VmShared> shared, const SessionLimits& limits)
      : shared_(std::move(shared)),
        vm_(shared_->executable, shared_->device),
        start_(ffi::Function::GetGlobal("wherry." + kind_of(shared_->device) + ".start")),
        inputs_(shared_->metadata, limits, shared_->device) {
    const Metadata& metadata = shared_->metadata;
    for (Entry entry : metadata.entries) {
      entries_.emplace_back(entry, vm_.function(name_of(entry)));
    }
    for (const StateSpec& spec : metadata.state) {
      std::vector<int64_t> shape = spec.shape;
      shape.insert(shape.begin(), spec.recurrent ? limits.slots : limits.pages[spec.group]);
      for (int64_t layer = 0; layer < spec.layers; ++layer) {
        state_.push_back({&spec, allocate(shape, spec.dtype, shared_->device)});
      }
    }
    // The arrays of a batch come first and change at each step; state and parameters stay.
    arguments_.resize(inputs_.size());
    for (const State& state : state_) arguments_.emplace_back(state.tensor);
    arguments_.insert(arguments_.end(), shared_->params.begin(), shared_->params.end());
  }

  void launch(const Batch& batch, Entry entry) override {
    configure_kernel_threads(shared_->threads);
    trimmer_.before_step(batch.tokens.size());
    result_ = ffi::Tensor();
    rows_ = static_cast<int64_t>(batch.logit_rows.size());
    entry_ = entry;
    inputs_.fill(batch, arguments_);
    ffi::Any result;
    function_of(entry).CallPacked(arguments_.data(), static_cast<int>(arguments_.size()), &result);
    if (entry != Entry::kEncode) result_ = std::move(result).cast<ffi::Tensor>();
    // Our plugins hold commands back until somebody waits.
    if (start_.has_value() && result_.defined() && result_.IsContiguous()) (*start_)(result_);
  }

  Rows collect() override {
    if (entry_ == Entry::kEncode) return {};
    if (!result_.defined()) throw Error(WHERRY_INTERNAL, "collect without a launch");
    result_ = to_host(result_);
    const int64_t columns =
        entry_ == Entry::kForward ? shared_->metadata.vocab_size : result_.size(result_.ndim() - 1);
    const std::string has = describe(result_.dtype(), shape_of(result_));
    const std::string wanted = describe(DLDataType{kDLFloat, 32, 1}, {rows_, columns});
    if (has != wanted || !result_.IsContiguous()) {
      throw Error(WHERRY_INCOMPATIBLE,
                  concat(name_of(entry_), " returned ", has, ", not ", wanted));
    }
    const char* data = static_cast<const char*>(result_.data_ptr()) + result_.byte_offset();
    return {reinterpret_cast<const float*>(data), rows_, columns};
  }

  void copy_page(int group, int32_t from, int32_t to) override {
    for (const ffi::Tensor& layer : layers(group)) copy(part_of(layer, from), part_of(layer, to));
  }

  void copy_slot(int32_t from, int32_t to) override {
    for (const ffi::Tensor& layer : recurrent()) copy(part_of(layer, from), part_of(layer, to));
  }

  void clear_slot(int32_t slot) override {
    for (const ffi::Tensor& layer : recurrent()) {
      ffi::Tensor part = part_of(layer, slot);
      copy(allocate_host(shape_of(part), part.dtype()), part);
    }
  }

  size_t page_bytes(int group) const override {
    size_t bytes = 0;
    for (const ffi::Tensor& layer : layers(group)) bytes += page_of(layer);
    return bytes;
  }

  void read_page(int group, int32_t page, char* bytes) override {
    for (const ffi::Tensor& layer : layers(group)) {
      ffi::Tensor part = to_host(part_of(layer, page));
      const char* data = static_cast<const char*>(part.data_ptr()) + part.byte_offset();
      std::memcpy(bytes, data, page_of(layer));
      bytes += page_of(layer);
    }
  }

  void write_page(int group, int32_t page, const char* bytes) override {
    for (const ffi::Tensor& layer : layers(group)) {
      ffi::Tensor part = part_of(layer, page);
      ffi::Tensor host = allocate_host(shape_of(part), part.dtype());
      std::memcpy(host.data_ptr(), bytes, page_of(layer));
      copy(host, part);
      bytes += page_of(layer);
    }
  }

 private:
  struct State {
    const StateSpec* spec;
    ffi::Tensor tensor;
  };

  const ffi::Function& function_of(Entry entry) const {
    for (const auto& [known, function] : entries_) {
      if (known == entry) return function;
    }
    throw Error(WHERRY_INTERNAL, concat("the library has no entry ", name_of(entry)));
  }

  std::vector<ffi::Tensor> layers(int group) const {
    std::vector<ffi::Tensor> found;
    for (const State& state : state_) {
      if (!state.spec->recurrent && state.spec->group == static_cast<size_t>(group)) {
        found.push_back(state.tensor);
      }
    }
    return found;
  }

  std::vector<ffi::Tensor> recurrent() const {
    std::vector<ffi::Tensor> found;
    for (const State& state : state_) {
      if (state.spec->recurrent) found.push_back(state.tensor);
    }
    return found;
  }

  static size_t page_of(const ffi::Tensor& layer) {
    std::vector<int64_t> shape = shape_of(layer);
    shape[0] = 1;
    return static_cast<size_t>(tensor_bytes(layer.dtype(), shape));
  }

  std::shared_ptr<const VmShared> shared_;
  VirtualMachine vm_;
  std::optional<ffi::Function> start_;  // brings a tensor of the device to the host, see backends/
  std::vector<std::pair<Entry, ffi::Function>> entries_;
  Inputs inputs_;
  std::vector<State> state_;
  std::vector<ffi::AnyView> arguments_;  // of an entry, in order
  AllocatorTrimmer trimmer_;
  ffi::Tensor result_;  // holds the memory that collect() points into
  Entry entry_ = Entry::kForward;
  int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Session> open_vm_session(std::shared_ptr<const VmShared> shared,
                                         const SessionLimits& limits) {
  return std::make_unique<VmSession>(std::move(shared), limits);
}

}  // namespace wherry
