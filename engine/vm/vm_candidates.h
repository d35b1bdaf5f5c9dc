// Runs a library's `candidates` entry, which reduces logits to candidates on the device.
#ifndef WHERRY_ENGINE_VM_VM_CANDIDATES_H_
#define WHERRY_ENGINE_VM_VM_CANDIDATES_H_

#include <tvm/ffi/function.h>

#include <vector>

#include "model/metadata.h"
#include "sampling/candidates.h"
#include "vm/staging.h"

namespace wherry {

class VmCandidates {
 public:
  // function: the library's `candidates` entry; metadata.candidates must be more than 0. choice:
  // the library's entry that draws tokens, or null.
  VmCandidates(ffi::Function function, ffi::Optional<ffi::Function> choice,
               const Metadata& metadata, int64_t logit_rows, DLDevice device);

  // Copies a step's scales [m] (0: no candidates for the row) and choices ([m] or empty) to the
  // device. Returns whether the device has to draw tokens.
  bool stage(const std::vector<float>& scales, const std::vector<Choice>& choices);
  // Launches the kernels on logits [m, vocab] with the arrays of the last stage(). Returns the
  // packed result, to be copied to the host.
  ffi::Tensor launch(const ffi::Tensor& logits, bool drawn);

  // Whether the device can sample tokens, not only take the most likely one.
  bool draws() const { return choice_.has_value(); }
  // Sets how scales and choices are copied to the device; see Staging.
  void copy_by(StepCopies& copies);
  // Returns a step's upper bounds: bytes copied to the device, bytes of its result.
  CopySizes sizes() const;
  // Returns the index of a row's token in a packed result.
  static int64_t chosen_at(const ffi::Tensor& packed, int64_t row);

  // Unpacks each row's candidates from a result; they are valid until the next call. A row with NaN
  // or +inf has no candidates. Throws WHERRY_INCOMPATIBLE.
  std::vector<Candidates> read(const ffi::Tensor& host, int64_t rows);

 private:
  const ffi::Function function_;
  const ffi::Optional<ffi::Function> choice_;
  const int64_t count_, vocab_;
  const double relative_error_;
  Staging scales_, choices_;
  std::vector<float> used_, logits_;
  ffi::Tensor device_scales_, device_choices_, host_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_VM_CANDIDATES_H_
