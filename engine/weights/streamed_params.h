// Builds the parameters of `forward` from stored tensors that arrive one by one, without files.
#ifndef WHERRY_ENGINE_WEIGHTS_STREAMED_PARAMS_H_
#define WHERRY_ENGINE_WEIGHTS_STREAMED_PARAMS_H_

#include <map>
#include <string>
#include <vector>

#include "weights/pack_groups.h"
#include "weights/weights.h"

namespace wherry {

class StreamedParams {
 public:
  // Prepares the tensors that the library needs. Throws WHERRY_INCOMPATIBLE with every tensor that
  // the index lacks or that does not fit.
  StreamedParams(const Metadata& metadata, const TensorCache& cache, DLDevice device,
                 PackFunction pack);

  // Returns the stored tensors that the library needs, in the order of their bytes.
  const std::vector<StoredTensor>& required_tensors() const { return required_; }

  // Returns device memory for required_tensors()[i], which the caller fills; each call returns the
  // same tensor. The caller widens bytes that are stored as bfloat16 (tensor_cache.h).
  ffi::Tensor place(size_t i);

  // Packs what is complete; call it when tensor `i` is filled. If the tensor was the last input of
  // a pack function, runs the function and frees the inputs that no other function needs.
  void filled(size_t i);

  // Returns one tensor for each parameter, in the metadata's order. Throws WHERRY_INVALID_ARGUMENT
  // with the tensors that are missing.
  std::vector<ffi::Tensor> finish();

 private:
  struct Arrival {
    ffi::Tensor tensor;
    bool filled = false;
    size_t users = 0;  // number of groups yet to run, and of parameters that are the tensor itself
  };

  bool complete(const PackGroup& group) const;
  void run(const PackGroup& group);
  void release(const std::string& name);

  const Metadata& metadata_;
  const DLDevice device_;
  const PackFunction pack_;
  std::vector<StoredTensor> required_;
  std::vector<PackGroup> waiting_;  // groups whose pack function is yet to run
  std::map<std::string, Arrival> arrivals_;
  std::vector<ffi::Tensor> params_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_STREAMED_PARAMS_H_
