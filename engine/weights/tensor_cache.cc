#include "weights/tensor_cache.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "model/metadata.h"
#include "support/json_reader.h"
#include "system/path.h"
#include "tensors/mapped_file.h"

namespace wherry {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostElements = int64_t{1} << 48;

StoredTensor parse_tensor(const ffi::json::Object& object, size_t shard, int64_t shard_bytes,
                          const std::string& where, Problems& problems) {
  JsonReader reader(object, where, problems);
  StoredTensor tensor;
  tensor.shard = shard;
  tensor.name = reader.string("name");
  tensor.shape = reader.integers("shape");
  tensor.dtype = parse_dtype(reader.string("dtype"), tensor.name, problems);
  tensor.offset = reader.integer("byteOffset");
  tensor.nbytes = reader.integer("nbytes");
  std::string format = reader.string_or("format", "raw");
  tensor.as_bf16 = format == "f32-to-bf16" && tensor.dtype.code == kDLFloat &&
                   tensor.dtype.bits == 32;  // mlc-llm stores dtypes other than float32 unchanged
  if (format != "raw" && format != "f32-to-bf16") {
    problems.add(tensor.name, ": format \"", format, "\"; known are raw, f32-to-bf16");
  }
  int64_t elements = 1;
  for (int64_t extent : tensor.shape) {
    if (extent < 0) problems.add(tensor.name, ": \"shape\" has the extent ", extent);
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMostElements) {
      problems.add(tensor.name, ": \"shape\" has more than 2^48 elements");
      return tensor;  // its byte count is unknown, so it is not checked
    }
  }
  int64_t expected = tensor_bytes(tensor.dtype, tensor.shape) / (tensor.as_bf16 ? 2 : 1);
  if (tensor.nbytes != expected) {
    problems.add(tensor.name, ": ", tensor.nbytes, " bytes; ", describe(tensor.dtype, tensor.shape),
                 " takes ", expected);
  }
  if (tensor.offset < 0 || tensor.nbytes < 0 || tensor.offset > shard_bytes - tensor.nbytes) {
    problems.add(tensor.name, ": bytes ", tensor.offset, " + ", tensor.nbytes,
                 " lie outside its shard of ", shard_bytes);
  }
  return tensor;
}

// Parses a shard and, if a folder is given, checks the shard's file. Paths out of the folder are
// errors.
Shard parse_shard(JsonReader& reader, const std::string* folder, Problems& problems) {
  const fs::path relative = path_of(reader.string("dataPath"));
  const fs::path path = folder == nullptr ? relative : path_of(*folder) / relative;
  Shard shard{text_of(path), reader.integer("nbytes")};
  std::string format = reader.string_or("format", "raw-shard");
  if (format != "raw-shard") {
    problems.add(reader.where(), ": format \"", format, "\"; known is raw-shard");
  }
  bool leaves = relative.is_absolute() || relative.has_root_name();
  for (const fs::path& part : relative) leaves = leaves || part == "..";
  if (leaves) {
    problems.add(reader.where(), ": ", text_of(relative), " is outside the folder");
    return shard;
  }
  if (folder == nullptr) return shard;
  std::error_code error;
  uintmax_t size = fs::file_size(path, error);
  if (error) {
    problems.add(shard.path, ": ", error.message());
  } else if (static_cast<int64_t>(size) < shard.nbytes) {
    problems.add(shard.path, " has ", size, " bytes; the index says ", shard.nbytes);
  }
  return shard;
}

// Converts bfloat16 values to a float32 tensor.
ffi::Tensor widen_bf16(const char* data, const StoredTensor& stored) {
  ffi::Tensor tensor = allocate_host(stored.shape, stored.dtype);
  auto* out = static_cast<uint32_t*>(tensor.data_ptr());
  for (int64_t i = 0; i < stored.nbytes / 2; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, 2);
    out[i] = static_cast<uint32_t>(bits) << 16;
  }
  return tensor;
}

}  // namespace

TensorCache TensorCache::open(const std::string& folder) {
  const std::string path = text_of(path_of(folder) / "tensor-cache.json");
  return read(read_file(path), path, &folder);
}

TensorCache TensorCache::parse(const std::string& text) {
  return read(text, "tensor-cache.json", nullptr);
}

TensorCache TensorCache::read(std::string text, const std::string& where,
                              const std::string* folder) {
  TensorCache cache;
  cache.index_text_ = std::move(text);
  Problems problems;
  JsonReader root(parse_json_object(cache.index_text_, where, WHERRY_INCOMPATIBLE), where,
                  problems);
  for (const ffi::json::Object& object : root.objects("records")) {
    size_t i = cache.shards_.size();
    JsonReader reader(object, concat("records[", i, "]"), problems);
    cache.shards_.push_back(parse_shard(reader, folder, problems));
    size_t j = 0;
    for (const ffi::json::Object& record : reader.objects("records")) {
      std::string here = concat("records[", i, "].records[", j++, "]");
      StoredTensor tensor = parse_tensor(record, i, cache.shards_[i].nbytes, here, problems);
      std::string name = tensor.name;
      if (!cache.tensors_.emplace(name, std::move(tensor)).second) {
        problems.add(name, " is listed twice");
      }
    }
  }
  problems.raise(WHERRY_INCOMPATIBLE,
                 "the weights in " + (folder ? *folder : where) + " cannot be used");
  return cache;
}

const StoredTensor* TensorCache::find(const std::string& name) const {
  if (auto it = tensors_.find(name); it != tensors_.end()) return &it->second;
  if (auto it = parts_.find(name); it != parts_.end()) return &it->second;
  const size_t bracket = name.rfind('[');
  if (bracket == std::string::npos) return nullptr;
  auto full = tensors_.find(name.substr(0, bracket));
  if (full == tensors_.end() || full->second.shape.empty()) return nullptr;
  long long first = 0, stop = 0;
  int read = 0;
  const char* rows = name.c_str() + bracket;
  if (std::sscanf(rows, "[%18lld:%18lld]%n", &first, &stop, &read) != 2) return nullptr;
  const int64_t all = full->second.shape[0];
  if (rows[read] != '\0' || read == 0 || first < 0 || first >= stop || stop > all) return nullptr;
  StoredTensor part = full->second;
  const int64_t row_bytes = part.nbytes / all;
  part.name = name;
  part.shape[0] = stop - first;
  part.offset += first * row_bytes;
  part.nbytes = (stop - first) * row_bytes;
  return &parts_.emplace(name, std::move(part)).first->second;
}

StoredBytes TensorCache::bytes(const StoredTensor& stored) const {
  mapped_.resize(shards_.size());
  std::shared_ptr<const MappedFile> file = mapped_[stored.shard].lock();
  if (!file) {
    file = MappedFile::open(shards_[stored.shard].path);
    mapped_[stored.shard] = file;
  }
  if (static_cast<int64_t>(file->size()) < stored.offset + stored.nbytes) {
    throw Error(WHERRY_INCOMPATIBLE, shards_[stored.shard].path + " was cut while it was read");
  }
  const char* data = file->data() + stored.offset;
  return {std::move(file), data, static_cast<size_t>(stored.nbytes)};
}

ffi::Tensor TensorCache::load(const StoredTensor& stored) const {
  StoredBytes bytes = this->bytes(stored);
  if (stored.as_bf16) return widen_bf16(bytes.data, stored);
  if (reinterpret_cast<uintptr_t>(bytes.data) % kAlignment == 0) {
    return tensor_over(std::move(bytes.file), bytes.data, stored.shape, stored.dtype);
  }
  ffi::Tensor tensor = allocate_host(stored.shape, stored.dtype);
  if (bytes.size > 0) std::memcpy(tensor.data_ptr(), bytes.data, bytes.size);
  return tensor;
}

}  // namespace wherry
