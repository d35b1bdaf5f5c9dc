#include "vm/vm_session.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "support/error.h"
#include "vm/graphs/sizes.h"
#include "vm/graphs/step_graphs.h"
#include "vm/staging.h"
#include "vm/step_arrays.h"
#include "vm/threads.h"
#include "vm/tower.h"
#include "vm/virtual_machine.h"
#include "vm/vm_candidates.h"

namespace wherry {

namespace {

// Frees memory of TVM's pooled allocator, which keeps freed buffers of each size. Sizes depend on
// the number of rows, so it trims after many different numbers.
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

class VmSession : public Session {
 public:
  VmSession(std::shared_ptr<const VmShared> shared, const SessionLimits& limits)
      : shared_(std::move(shared)),
        page_ids_(limits.page_ids),
        graphs_(graphs_of(*shared_)),
        vm_(shared_->executable, shared_->device),
        plugin_(plugin_of(shared_->device)),
        arrays_(shared_->metadata, limits, shared_->device) {
    const Metadata& metadata = shared_->metadata;
    for (Entry entry : metadata.entries) {
      entries_.emplace_back(entry, vm_.function(name_of(entry)));
    }
    if (metadata.candidates > 0) {
      candidates_.emplace(vm_.function("candidates"), vm_.find("choice"), metadata,
                          limits.logit_rows, shared_->device);
    }
    for (const StateSpec& spec : metadata.state) {
      std::vector<int64_t> shape = spec.shape;
      shape.insert(shape.begin(), spec.recurrent ? limits.slots : limits.pages[spec.group]);
      for (int64_t layer = 0; layer < spec.layers; ++layer) {
        state_.push_back({&spec, allocate(shape, spec.dtype, shared_->device)});
      }
    }
    if (metadata.image_features > 0) {
      const int64_t rows = std::max<int64_t>(1, limits.image_rows);
      image_features_ =
          allocate({rows, metadata.image_features}, {kDLFloat, 32, 1}, shared_->device);
    }
    open_copies();  // works, because the allocations above made the device's context current
    // The arrays of the batch are the first arguments and change in each step; image features,
    // state and parameters never do.
    arguments_.resize(arrays_.size());
    if (image_features_.defined()) arguments_.emplace_back(image_features_);
    for (const State& state : state_) arguments_.emplace_back(state.tensor);
    arguments_.insert(arguments_.end(), shared_->params.begin(), shared_->params.end());
  }

  void launch(const Batch& batch, Entry entry) override {
    configure_kernel_threads(shared_->threads);
    trimmer_.before_step(batch.tokens.size());
    collected_ = Flight();  // frees the collected step's memory for this step
    full_rows_.clear();
    Flight flight;
    flight.launched = true;
    // Two steps in flight use different lanes, so that neither overwrites the other's results.
    flight.lane = flights_.empty() ? 0 : 1 - flights_.back().lane;
    if (copies_) copies_->begin();
    flight.rows = static_cast<int64_t>(batch.logit_rows.size());
    flight.entry = entry;
    StepResults step = start(batch, entry, flight.lane);
    flight.result = std::move(step.result);
    flight.packed = std::move(step.packed);
    if (copies_) flight.copied = copies_->finish(flight.packed);
    if (entry != Entry::kEncode) {
      // Our device plugins submit commands only when a call waits for them, or here.
      if (plugin_) plugin_->start(flight.packed.defined() ? flight.packed : flight.result);
      flight.requested.assign(static_cast<size_t>(flight.rows), !flight.packed.defined());
      for (int64_t i = 0; i < flight.rows && !can_fetch_rows() && flight.packed.defined(); ++i) {
        if (batch.scales[static_cast<size_t>(i)] == 0) request_row(flight, i);
      }
    }
    flights_.push_back(std::move(flight));
  }

  void see(const ImageTile& tile, int64_t first) override {
    if (!shared_->tower) throw Error(WHERRY_INTERNAL, "the model was loaded without its tower");
    {
      const ffi::Tensor features = shared_->tower->see(tile);
      copy_tensor(features, rows_of(image_features_, first, features.size(0)));
    }
    // The tower's buffers are large, and no other step has buffers of their sizes.
    if (is_host(shared_->device)) release_pooled_memory();
  }

  Rows collect() override {
    if (!flights_.empty()) {
      collected_ = std::move(flights_.front());
      flights_.pop_front();
      full_rows_.clear();
    }
    if (!collected_.launched) throw Error(WHERRY_INTERNAL, "collect without a launch");
    if (collected_.entry == Entry::kEncode) return {};
    Rows rows{collected_.rows, collected_.result.size(1), {}};
    if (collected_.packed.defined()) {
      rows.candidates =
          candidates_->read(started(collected_.packed, collected_.copied), collected_.rows);
    } else {
      collected_.result = started(collected_.result, 0);
    }
    return rows;
  }

  bool can_fetch_rows() const override { return can_wait(shared_->device); }

  bool request_row(int64_t i) override { return request_row(collected_, i); }

  const float* row(int64_t i) override {
    ffi::Tensor row = part_of(collected_.result, i);
    if (!is_host(row.device())) {
      row = to_host(row);
      bytes_read_ += ffi::GetDataSize(row);
      full_rows_.push_back(row);
    }
    return reinterpret_cast<const float*>(bytes_of(row));
  }

  // Returns whether launch-ahead works: synchronous copies of TVM's own devices would wait for the
  // step that was launched ahead.
  bool chains() const override {
    return (plugin_ && plugin_->take.has_value() && candidates_) ||
           (copies_ && copies_->given_up().empty());
  }
  std::string chains_given_up() const override {
    return copies_ ? copies_->given_up() : no_copies_;
  }
  bool draws() const override { return chains() && candidates_->draws(); }
  void discard() override {
    flights_.clear();
    collected_ = Flight();
  }
  bool asynchronous() const override { return !is_host(shared_->device); }
  int64_t max_candidates() const override { return shared_->metadata.candidates; }
  uint64_t bytes_read() const override { return bytes_read_; }
  GraphCounts graphs() const override {
    return graphs_ ? GraphCounts{graphs_->replayed(), graphs_->given_up()} : GraphCounts{};
  }

  void copy_page(int group, int32_t from, int32_t to) override {
    for (const ffi::Tensor& layer : layers(group))
      copy_tensor(part_of(layer, from), part_of(layer, to));
  }

  void trim(const std::vector<std::vector<int32_t>>& free_pages,
            const std::vector<std::pair<int64_t, int64_t>>& free_rows) override {
    release_pooled_memory();
    if (!is_host(shared_->device)) return;
    const auto row = static_cast<size_t>(shared_->metadata.image_features) * sizeof(float);
    for (const auto& [first, rows] : free_rows) {
      return_memory(image_features_, static_cast<size_t>(first) * row,
                    static_cast<size_t>(rows) * row);
    }
    for (size_t group = 0; group < free_pages.size(); ++group) {
      std::vector<int32_t> pages = free_pages[group];
      std::sort(pages.begin(), pages.end());
      for (size_t begin = 0, end = 0; begin < pages.size(); begin = end) {
        for (end = begin + 1; end < pages.size() && pages[end] == pages[end - 1] + 1;) ++end;
        for (const ffi::Tensor& layer : layers(static_cast<int>(group))) {
          const size_t bytes = page_of(layer);
          return_memory(layer, static_cast<size_t>(pages[begin]) * bytes, (end - begin) * bytes);
        }
      }
    }
  }

  void copy_slot(int32_t from, int32_t to) override {
    for (const ffi::Tensor& layer : recurrent())
      copy_tensor(part_of(layer, from), part_of(layer, to));
  }

  void clear_slot(int32_t slot) override {
    for (const ffi::Tensor& layer : recurrent()) {
      ffi::Tensor part = part_of(layer, slot);
      copy_tensor(allocate_host(shape_of(part), part.dtype()), part);
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
      std::memcpy(bytes, bytes_of(part), page_of(layer));
      bytes += page_of(layer);
    }
  }

  void write_page(int group, int32_t page, const char* bytes) override {
    for (const ffi::Tensor& layer : layers(group)) {
      ffi::Tensor part = part_of(layer, page);
      ffi::Tensor host = allocate_host(shape_of(part), part.dtype());
      std::memcpy(host.data_ptr(), bytes, page_of(layer));
      copy_tensor(host, part);
      bytes += page_of(layer);
    }
  }

 private:
  struct State {
    const StateSpec* spec;
    ffi::Tensor tensor;
  };

  // A step that was launched and not yet collected.
  struct Flight {
    ffi::Tensor result;  // logits of the entry's result rows
    ffi::Tensor packed;  // candidates of the result rows, if the batch has scales
    Entry entry = Entry::kForward;
    int64_t rows = 0;
    std::vector<bool> requested;  // whether each result row's whole logits were requested
    int lane = 0;
    uint64_t copied = 0;  // the step's number in `copies_`; 0 if there is none
    bool launched = false;
  };

  // Copies the arrays to the device and launches the step, by a CUDA graph if there is one.
  StepResults start(const Batch& batch, Entry entry, int lane) {
    const bool repeats =
        entry == Entry::kForward && graphs_ && graphs_->given_up().empty() && only_decodes(batch);
    if (!repeats) {
      fill(batch);
      const bool drawn = stage(batch);
      auto call = [&] { return run(batch, entry, drawn); };
      return graphs_ ? graphs_->launch(lane, call) : call();
    }
    const Batch rounded = with_rounded_pages(batch, page_ids_);
    fill(rounded);
    const bool drawn = stage(rounded);
    return graphs_->run(lane, key_of(rounded, drawn), [&] { return run(rounded, entry, drawn); });
  }

  bool reads_candidates(const Batch& batch) const { return candidates_ && !batch.scales.empty(); }

  // Copies scales and choices to the device; returns whether the device has to draw tokens.
  bool stage(const Batch& batch) {
    return reads_candidates(batch) && candidates_->stage(batch.scales, batch.choices);
  }

  // Launches the kernels of a step whose arrays are on the device.
  StepResults run(const Batch& batch, Entry entry, bool drawn) {
    ffi::Any result;
    function_of(entry).CallPacked(arguments_.data(), static_cast<int>(arguments_.size()), &result);
    StepResults step;
    if (entry == Entry::kEncode) return step;
    step.result = std::move(result).cast<ffi::Tensor>();
    check_result(step.result, entry, static_cast<int64_t>(batch.logit_rows.size()));
    if (reads_candidates(batch)) step.packed = candidates_->launch(step.result, drawn);
    return step;
  }

  // Copies the arrays to the device, and sets the arguments to their views.
  void fill(const Batch& batch) {
    const std::vector<ffi::Tensor>& views = arrays_.fill(batch);
    std::copy(views.begin(), views.end(), arguments_.begin());
    for (size_t i = 0; i < batch.chosen_from.size(); ++i) {
      if (batch.chosen_from[i] < 0) continue;
      const ffi::Tensor& packed = flights_.back().packed;  // packed candidates of the previous step
      copy_tensor(element_of(packed, VmCandidates::chosen_at(packed, batch.chosen_from[i])),
                  element_of(arrays_.tokens(), static_cast<int64_t>(i)));
    }
  }

  bool request_row(Flight& flight, int64_t i) {
    if (flight.requested.at(static_cast<size_t>(i))) return false;
    plugin_->start(part_of(flight.result, i));
    flight.requested[static_cast<size_t>(i)] = true;
    return true;
  }

  // Functions that our device plugins have and TVM's devices lack; see engine/backends/.
  struct Plugin {
    ffi::Function start;
    ffi::Optional<ffi::Function> take;  // none in browsers, where no call can wait
  };

  static std::optional<Plugin> plugin_of(DLDevice device) {
    auto start = ffi::Function::GetGlobal("wherry." + kind_of(device) + ".start");
    auto take = ffi::Function::GetGlobal("wherry." + kind_of(device) + ".take");
    if (!start.has_value()) return std::nullopt;
    return Plugin{*start, take};
  }

  // Opens asynchronous copies. Only launch-ahead needs them, and it requires candidates.
  void open_copies() {
    if (!candidates_ || plugin_ || arrays_.bytes() == 0) return;
    CopySizes sizes = candidates_->sizes();
    sizes.written += arrays_.bytes();
    try {
      copies_ = open_step_copies(shared_->device, sizes);
    } catch (const Error& error) {
      no_copies_ = error.what();
    }
    if (!copies_) return;
    arrays_.copy_by(*copies_);
    candidates_->copy_by(*copies_);
  }

  // Returns null if the device has no CUDA graphs or the options disable them. Capture runs a step
  // twice, which a recurrent model does not allow, because a step changes its state.
  static std::unique_ptr<StepGraphs> graphs_of(const VmShared& shared) {
    if (!shared.graphs || shared.metadata.recurrent()) return nullptr;
    try {
      std::unique_ptr<Capturer> capturer = open_capturer(shared.device);
      if (!capturer) return nullptr;
      GraphMemory::install();  // must precede the VM's creation
      return std::make_unique<StepGraphs>(std::move(capturer));
    } catch (const Error& error) {
      return std::make_unique<StepGraphs>(nullptr, error.what());
    }
  }

  const ffi::Function& function_of(Entry entry) const {
    for (const auto& [known, function] : entries_) {
      if (known == entry) return function;
    }
    throw Error(WHERRY_INTERNAL, concat("the library has no entry ", name_of(entry)));
  }

  void check_result(const ffi::Tensor& result, Entry entry, int64_t rows) const {
    const bool embeds = entry == Entry::kEmbed && result.ndim() == 2;
    const int64_t columns = embeds ? result.size(1) : shared_->metadata.vocab_size;
    const std::string has = describe(result.dtype(), shape_of(result));
    const std::string expected = describe(DLDataType{kDLFloat, 32, 1}, {rows, columns});
    if (has != expected || !result.IsContiguous()) {
      throw Error(WHERRY_INCOMPATIBLE,
                  concat(name_of(entry), " returned ", has, ", not ", expected));
    }
  }

  // Waits for a result of launch() and returns it on the host; counts its bytes.
  ffi::Tensor started(const ffi::Tensor& tensor, uint64_t copied) {
    if (is_host(tensor.device())) return tensor;
    ffi::Tensor here;
    if (plugin_ && plugin_->take.has_value()) {
      here = allocate_host(shape_of(tensor), tensor.dtype());
      (*plugin_->take)(tensor, here);
    } else if (copied != 0) {
      here = allocate_host(shape_of(tensor), tensor.dtype());
      if (!copies_->take(copied, here)) here = to_host(tensor);
    } else {
      here = to_host(tensor);
    }
    bytes_read_ += ffi::GetDataSize(here);
    return here;
  }

  std::vector<ffi::Tensor> layers(int group) const {
    std::vector<ffi::Tensor> tensors;
    for (const State& state : state_) {
      if (!state.spec->recurrent && state.spec->group == static_cast<size_t>(group)) {
        tensors.push_back(state.tensor);
      }
    }
    return tensors;
  }

  std::vector<ffi::Tensor> recurrent() const {
    std::vector<ffi::Tensor> tensors;
    for (const State& state : state_) {
      if (state.spec->recurrent) tensors.push_back(state.tensor);
    }
    return tensors;
  }

  static size_t page_of(const ffi::Tensor& layer) {
    std::vector<int64_t> shape = shape_of(layer);
    shape[0] = 1;
    return static_cast<size_t>(tensor_bytes(layer.dtype(), shape));
  }

  std::shared_ptr<const VmShared> shared_;
  const std::vector<int64_t> page_ids_;  // capacity of each group's page table
  std::unique_ptr<StepGraphs> graphs_;   // null if every step is launched kernel by kernel
  VirtualMachine vm_;
  std::optional<Plugin> plugin_;  // functions of the device's plugin; none for TVM's own devices
  std::vector<std::pair<Entry, ffi::Function>> entries_;
  StepArrays arrays_;
  std::vector<State> state_;
  ffi::Tensor image_features_;           // [rows, d]; undefined if the model takes no images
  std::vector<ffi::AnyView> arguments_;  // arguments of an entry, in the library's order
  AllocatorTrimmer trimmer_;
  std::optional<VmCandidates> candidates_;
  std::unique_ptr<StepCopies> copies_;  // null if the device needs or has no asynchronous copies
  std::string no_copies_;               // why opening copies failed; empty if it did not
  std::deque<Flight> flights_;          // steps that were launched and not collected
  Flight collected_;                    // the last collected step
  std::vector<ffi::Tensor> full_rows_;  // memory of its fetched rows of logits
  uint64_t bytes_read_ = 0;
};

}  // namespace

std::unique_ptr<Session> open_vm_session(std::shared_ptr<const VmShared> shared,
                                         const SessionLimits& limits) {
  return std::make_unique<VmSession>(std::move(shared), limits);
}

}  // namespace wherry
