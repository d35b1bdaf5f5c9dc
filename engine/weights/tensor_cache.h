// tensor-cache.json, the index of a folder of weights: the format that TVM and mlc-llm write.
//
//   {"metadata": {...}, "records": [
//     {"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": N, "records": [
//       {"name": "model.norm.weight", "shape": [64], "dtype": "float32",
//        "format": "raw" | "f32-to-bf16", "nbytes": 256, "byteOffset": 0}, ...]}, ...]}
#ifndef WHERRY_ENGINE_WEIGHTS_TENSOR_CACHE_H_
#define WHERRY_ENGINE_WEIGHTS_TENSOR_CACHE_H_

#include <tvm/ffi/container/tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensors/device.h"

namespace wherry {

struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  DLDataType dtype{};
  bool as_bf16 = false;  // format "f32-to-bf16": dtype float32, stored as its upper 16 bits
  size_t shard = 0;
  int64_t offset = 0;  // bytes
  int64_t nbytes = 0;  // bytes as stored
};

// A stored tensor's bytes in its shard, and the file mapping that contains them.
struct StoredBytes {
  std::shared_ptr<const MappedFile> file;
  const char* data = nullptr;
  size_t size = 0;
};

struct Shard {
  std::string path;
  int64_t nbytes = 0;
};

class TensorCache {
 public:
  // Parses `folder`/tensor-cache.json and compares the sizes of the shards with it. Throws
  // WHERRY_NOT_FOUND if there is no index, WHERRY_INCOMPATIBLE with everything that is wrong.
  static TensorCache open(const std::string& folder);
  // Parses the index's text, for shards whose bytes arrive separately: their paths are mere names.
  // Do not call `bytes` or `load` on the result.
  static TensorCache parse(const std::string& text);

  // Finds a stored tensor; null if there is none of this name. "x[2:5]" is a tensor of the rows 2,
  // 3 and 4 of x.
  const StoredTensor* find(const std::string& name) const;
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::vector<Shard>& shards() const { return shards_; }
  const std::string& index_text() const { return index_text_; }

  // Returns the tensor's bytes in the mapped shard. Throws WHERRY_INCOMPATIBLE if the shard has
  // become shorter.
  StoredBytes bytes(const StoredTensor& stored) const;

  // Returns the tensor in host memory: a view of the mapped shard, or a copy if its bytes are not
  // aligned for TVM's kernels or need widening. A view keeps the mapping alive.
  ffi::Tensor load(const StoredTensor& stored) const;

 private:
  // where: name of the index in errors; folder: folder of the shards, to check them, or null.
  static TensorCache read(std::string text, const std::string& where, const std::string* folder);

  std::string index_text_;
  std::vector<Shard> shards_;
  // File mapping of each shard; null when no tensor uses it.
  mutable std::vector<std::weak_ptr<const MappedFile>> mapped_;
  std::map<std::string, StoredTensor> tensors_;
  mutable std::map<std::string, StoredTensor> parts_;  // slices that find() returned
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_TENSOR_CACHE_H_
