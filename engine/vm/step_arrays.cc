#include "vm/step_arrays.h"

#include <string>

#include "support/error.h"

namespace wherry {

namespace {

constexpr DLDataType kInt32{kDLInt, 32, 1};
// Elements to which arrays are aligned, as CUDA's own allocations are.
constexpr int64_t kStep = 64;

int64_t aligned(int64_t n) { return (n + kStep - 1) / kStep * kStep; }

// Returns the elements from `begin` on as a tensor [n], or [n / columns, columns].
ffi::Tensor part(const ffi::Tensor& tensor, int64_t begin, int64_t n, int64_t columns) {
  const int64_t shape[] = {columns > 1 ? n / columns : n, columns}, strides[] = {columns, 1};
  const size_t axes = columns > 1 ? 2 : 1;
  return tensor.as_strided(ffi::ShapeView(shape, axes), ffi::ShapeView(strides, axes), begin);
}

}  // namespace

StepArrays::StepArrays(const Metadata& metadata, const SessionLimits& limits, DLDevice device) {
  for (const std::string& name : metadata.inputs) add(name, limits);
  // On CUDA each copy is a driver call, so all arrays share one copy. Other devices have handles in
  // place of addresses, and their kernels would have to add offsets.
  if (device.device_type == kDLCUDA) {
    int64_t capacity = 0;
    for (const Field& field : fields_) capacity += aligned(field.capacity);
    together_ = std::make_unique<Staging>(capacity, kInt32, device);
    return;
  }
  for (const Field& field : fields_) apart_.emplace_back(field.capacity, kInt32, device);
}

const std::vector<ffi::Tensor>& StepArrays::fill(const Batch& batch) {
  views_.clear();
  if (batch.image_rows.empty()) no_images_.assign(batch.tokens.size(), -1);
  if (together_) {
    fill_together(batch);
  } else {
    fill_apart(batch);
  }
  return views_;
}

void StepArrays::fill_apart(const Batch& batch) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const ffi::Tensor view = apart_[i].view(fields_[i].of(batch));
    const int64_t columns = fields_[i].columns;
    views_.push_back(columns > 1 ? part(view, 0, view.size(0), columns) : view);
  }
}

void StepArrays::fill_together(const Batch& batch) {
  joined_.clear();
  std::vector<int64_t> begins;
  for (const Field& field : fields_) {
    Values values = field.of(batch);
    if (static_cast<int64_t>(values.size()) > field.capacity) {
      throw Error(WHERRY_INTERNAL,
                  concat("a batch has ", values.size(), " elements; the session was opened for ",
                         field.capacity));
    }
    begins.push_back(static_cast<int64_t>(joined_.size()));
    joined_.insert(joined_.end(), values.begin(), values.end());
    joined_.resize(static_cast<size_t>(aligned(static_cast<int64_t>(joined_.size()))));
  }
  ffi::Tensor joined = together_->view(joined_);
  for (size_t i = 0; i < fields_.size(); ++i) {
    const auto n = static_cast<int64_t>(fields_[i].of(batch).size());
    views_.push_back(part(joined, begins[i], n, fields_[i].columns));
  }
}

void StepArrays::add(const std::string& name, const SessionLimits& limits) {
  auto plain = [&](std::vector<int32_t> Batch::* field, int64_t capacity) {
    fields_.push_back({[field](const Batch& b) -> Values { return b.*field; }, capacity});
  };
  const int64_t n = limits.rows, r = limits.sequences;
  if (name == "tokens") {
    tokens_ = fields_.size();
    return plain(&Batch::tokens, n);
  }
  if (name == "positions") return plain(&Batch::positions, n);
  if (name == "sequences") return plain(&Batch::sequences, n);
  if (name == "adapters") return plain(&Batch::adapters, n);
  if (name == "query_indptr") return plain(&Batch::query_indptr, r + 1);
  if (name == "image_rows") {
    fields_.push_back({[this](const Batch& b) -> Values {
                         return b.image_rows.empty() ? no_images_ : b.image_rows;
                       },
                       n});
    return;
  }
  if (name == "rope_positions") {
    fields_.push_back({[](const Batch& b) -> Values { return b.rope_positions; }, 3 * n, 3});
    return;
  }
  if (name == "last_visible") return plain(&Batch::last_visible, n);
  if (name == "image_features") return;  // no array of the batch, but a tensor of the session
  if (name == "slots") return plain(&Batch::slots, r);
  if (name == "source_lengths") return plain(&Batch::source_lengths, r);
  if (name == "logit_rows") return plain(&Batch::logit_rows, limits.logit_rows);
  // Parses the group's index from an array name such as "pages.0"; see parse_metadata.
  size_t group = std::stoul(name.substr(name.find('.') + 1));
  fields_.push_back({[group](const Batch& b) -> Values { return b.pages[group].indptr; }, r + 1});
  fields_.push_back(
      {[group](const Batch& b) -> Values { return b.pages[group].ids; }, limits.page_ids[group]});
}

}  // namespace wherry
