// The arrays of a step on the device, in the order of a library's arguments.
#ifndef WHERRY_ENGINE_MODEL_STEP_ARRAYS_H_
#define WHERRY_ENGINE_MODEL_STEP_ARRAYS_H_

#include <functional>
#include <memory>
#include <vector>

#include "model/metadata.h"
#include "model/model.h"
#include "model/staging.h"

namespace wherry {

class StepArrays {
 public:
  StepArrays(const Metadata& metadata, const SessionLimits& limits, DLDevice device);

  // Their views, one an argument; where they lie follows from the sizes of all. Valid until the
  // next call. Throws WHERRY_INTERNAL for more than the session was opened for.
  const std::vector<ffi::Tensor>& fill(const Batch& batch);

  // See Staging. Only where they go together; bytes: 0 elsewhere.
  void copy_by(StepCopies& copies) { together_->copy_by(copies); }
  size_t bytes() const { return together_ ? together_->bytes() : 0; }

  size_t size() const { return fields_.size(); }
  // The view of the rows' tokens.
  const ffi::Tensor& tokens() const { return views_[tokens_]; }

 private:
  using Values = const std::vector<int32_t>&;
  struct Field {
    std::function<Values(const Batch&)> of;
    int64_t capacity;
  };

  void add(const std::string& name, const SessionLimits& limits);
  void fill_apart(const Batch& batch);
  void fill_together(const Batch& batch);

  std::vector<Field> fields_;
  std::vector<Staging> apart_;         // a place for each
  std::unique_ptr<Staging> together_;  // or one for all: a copy a step
  std::vector<int32_t> joined_;
  std::vector<ffi::Tensor> views_;
  size_t tokens_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_STEP_ARRAYS_H_
