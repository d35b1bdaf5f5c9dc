// The arrays of a step's batch on the device, in the order of the library's arguments.
#ifndef WHERRY_ENGINE_VM_STEP_ARRAYS_H_
#define WHERRY_ENGINE_VM_STEP_ARRAYS_H_

#include <functional>
#include <memory>
#include <vector>

#include "model/metadata.h"
#include "model/model.h"
#include "vm/staging.h"

namespace wherry {

class StepArrays {
 public:
  StepArrays(const Metadata& metadata, const SessionLimits& limits, DLDevice device);

  // Copies a batch to the device; returns one view for each argument, at addresses that depend on
  // the sizes alone. The views are valid until the next call. Throws WHERRY_INTERNAL if the batch
  // exceeds the session's limits.
  const std::vector<ffi::Tensor>& fill(const Batch& batch);

  // Sets how arrays that share one buffer are copied (see Staging); bytes() is 0 if they do not.
  void copy_by(StepCopies& copies) { together_->copy_by(copies); }
  size_t bytes() const { return together_ ? together_->bytes() : 0; }

  size_t size() const { return fields_.size(); }
  // Returns the view of the rows' input tokens.
  const ffi::Tensor& tokens() const { return views_[tokens_]; }

 private:
  using Values = const std::vector<int32_t>&;
  struct Field {
    std::function<Values(const Batch&)> of;
    int64_t capacity;
    int64_t columns = 1;  // of an array with two axes
  };

  void add(const std::string& name, const SessionLimits& limits);
  void fill_apart(const Batch& batch);
  void fill_together(const Batch& batch);

  std::vector<Field> fields_;
  std::vector<int32_t> no_images_;  // the argument `image_rows` of a batch that has none
  std::vector<Staging> apart_;      // one buffer for each array
  // One buffer for all arrays, so that each step needs a single copy; null if apart_ is used.
  std::unique_ptr<Staging> together_;
  std::vector<int32_t> joined_;
  std::vector<ffi::Tensor> views_;
  size_t tokens_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_STEP_ARRAYS_H_
