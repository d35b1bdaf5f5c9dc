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

#include "model/device.h"

namespace wherry {

struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  DLDataType dtype{};
  bool as_bf16 = false;  // "f32-to-bf16": dtype float32, stored as its upper 16 bits
  size_t shard = 0;
  int64_t offset = 0;  // bytes
  int64_t nbytes = 0;  // as stored
};

// A stored tensor's bytes as they are in its shard, and what keeps them mapped.
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
  // The same of the index's text where the shards' bytes come by themselves: their paths are names.
  // `bytes` and `load` are not for it.
  static TensorCache parse(const std::string& text);

  // Null: no such tensor. "x[2:5]" are the rows 2, 3 and 4 of x, a tensor for itself.
  const StoredTensor* find(const std::string& name) const;
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::vector<Shard>& shards() const { return shards_; }
  const std::string& index_text() const { return index_text_; }

  // Throws WHERRY_INCOMPATIBLE if the shard has become shorter.
  StoredBytes bytes(const StoredTensor& stored) const;

  // The tensor in host memory: over the mapped shard where its bytes are aligned for TVM's
  // kernels and are the values themselves, else a copy. Keeps the mapping alive.
  ffi::Tensor load(const StoredTensor& stored) const;

 private:
  // where: names the index in errors; folder: of the shards, which are compared with it, or null.
  static TensorCache read(std::string text, const std::string& where, const std::string* folder);

  std::string index_text_;
  std::vector<Shard> shards_;
  mutable std::vector<std::weak_ptr<const MappedFile>> mapped_;  // while tensors use them
  std::map<std::string, StoredTensor> tensors_;
  mutable std::map<std::string, StoredTensor> parts_;  // that were asked for
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_WEIGHTS_TENSOR_CACHE_H_
