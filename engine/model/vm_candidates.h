// A library's `candidates`: what sampling needs of a step's logits, made on the device.
#ifndef WHERRY_ENGINE_MODEL_VM_CANDIDATES_H_
#define WHERRY_ENGINE_MODEL_VM_CANDIDATES_H_

#include <tvm/ffi/function.h>

#include <vector>

#include "model/candidates.h"
#include "model/metadata.h"
#include "model/staging.h"

namespace wherry {

class VmCandidates {
 public:
  // `function`: of the library; metadata.candidates is more than 0.
  // choice: the library's, or null.
  VmCandidates(ffi::Function function, ffi::Optional<ffi::Function> choice,
               const Metadata& metadata, int64_t logit_rows, DLDevice device);

  // Writes what a step asks for to the device: scales [m], 0 where none are wanted; choices [m] or
  // none. Whether tokens have to be drawn.
  bool stage(const std::vector<float>& scales, const std::vector<Choice>& choices);
  // Starts the work on logits [m, vocab] of the device, for what was written last. The result,
  // which has to be read back.
  ffi::Tensor launch(const ffi::Tensor& logits, bool drawn);

  // Whether tokens can be drawn there, by others than `most_likely` choices.
  bool draws() const { return choice_.has_value(); }
  // See Staging.
  void copy_by(StepCopies& copies);
  // Upper bounds of a step: bytes written to the device, bytes of its result.
  CopySizes sizes() const;
  // Where in a result the token of a row is.
  static int64_t chosen_at(const ffi::Tensor& packed, int64_t row);

  // Reads each row's candidates from that result; they are valid until the next call. A row that
  // cannot be sampled from has none. Throws WHERRY_INCOMPATIBLE.
  std::vector<Candidates> read(const ffi::Tensor& host, int64_t rows);

 private:
  const ffi::Function function_;
  const ffi::Optional<ffi::Function> choice_;
  const int64_t count_, vocab_;
  const double relative_error_;
  Staging scales_, how_;
  std::vector<float> used_, logits_;
  ffi::Tensor scales_there_, how_there_, host_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_VM_CANDIDATES_H_
