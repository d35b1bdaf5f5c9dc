// The parameters of `forward` from stored tensors that come one by one, where there are no files.
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
  // Throws WHERRY_INCOMPATIBLE with every tensor that the index lacks or that does not fit.
  StreamedParams(const Metadata& metadata, const TensorCache& cache, DLDevice device,
                 PackFunction pack);

  // The stored tensors that the library takes, in the order of their bytes.
  const std::vector<StoredTensor>& wanted() const { return wanted_; }

  // Memory on the device for tensor `i` of these, to be filled. Bytes that are stored as bfloat16
  // are to be widened on the way (tensor_cache.h). The same at each call.
  ffi::Tensor place(size_t i);

  // Its bytes are there. A pack function whose last tensor this is runs now; what nobody else
  // takes of its tensors is freed.
  void filled(size_t i);

  // One tensor a parameter, in the order of the metadata. Throws WHERRY_INVALID_ARGUMENT with the
  // tensors that have not come.
  std::vector<ffi::Tensor> finish();

 private:
  struct Arrival {
    ffi::Tensor tensor;
    bool filled = false;
    size_t users = 0;  // groups that have not run, and parameters that are the tensor itself
  };

  bool complete(const PackGroup& group) const;
  void run(const PackGroup& group);
  void release(const std::string& name);

  const Metadata& metadata_;
  const DLDevice device_;
  const PackFunction pack_;
  std::vector<StoredTensor> wanted_;
  std::vector<PackGroup> waiting_;  // that have not run
  std::map<std::string, Arrival> arrivals_;
  std::vector<ffi::Tensor> params_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_STREAMED_PARAMS_H_
