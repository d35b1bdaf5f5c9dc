#include "weights/weights.h"

#include <filesystem>
#include <map>
#include <utility>

#include "support/error.h"
#include "support/hash.h"
#include "weights/packed_file.h"

namespace wherry {

namespace {

// Parameters that one call of a pack function gives.
struct PackGroup {
  std::string pack;
  std::vector<std::string> from;
  std::vector<size_t> params;  // positions in the metadata
};

std::vector<PackGroup> groups_of(const Metadata& metadata) {
  std::map<std::pair<std::string, std::vector<std::string>>, size_t> known;
  std::vector<PackGroup> groups;
  for (size_t i = 0; i < metadata.params.size(); ++i) {
    const ParamSpec& spec = metadata.params[i];
    if (spec.pack.empty()) continue;
    auto [it, added] = known.try_emplace({spec.pack, spec.from}, groups.size());
    if (added) groups.push_back({spec.pack, spec.from, {}});
    groups[it->second].params.push_back(i);
  }
  return groups;
}

void check_stored(const Metadata& metadata, const TensorCache& cache) {
  Problems problems;
  for (const ParamSpec& spec : metadata.params) {
    for (const std::string& name : spec.from) {
      const StoredTensor* stored = cache.find(name);
      if (stored == nullptr) {
        problems.add(name, " is missing (for parameter ", spec.name, ")");
        continue;
      }
      std::string has = describe(stored->dtype, stored->shape);
      std::string wanted = describe(spec.dtype, spec.shape);
      if (spec.pack.empty() && has != wanted) {
        problems.add(name, " is ", has, "; the library takes ", wanted);
      }
    }
  }
  problems.raise(WHERRY_INCOMPATIBLE, "the weights do not fit the library");
}

// Calls a group's function and checks its results. Result: one tensor for each of group.params.
std::vector<ffi::Tensor> run_group(const PackGroup& group, const Metadata& metadata,
                                   const TensorCache& cache, DLDevice device,
                                   const PackFunction& pack) {
  std::vector<ffi::Tensor> from;
  for (const std::string& name : group.from) {
    from.push_back(to_device(cache.load(*cache.find(name)), device));
  }
  std::vector<ffi::Tensor> results = pack(group.pack, from);
  std::vector<ffi::Tensor> chosen;
  Problems problems;
  for (size_t i : group.params) {
    const ParamSpec& spec = metadata.params[i];
    if (spec.index < 0 || spec.index >= static_cast<int64_t>(results.size())) {
      problems.add(spec.name, ": index ", spec.index, " of ", results.size(), " results");
      continue;
    }
    const ffi::Tensor& tensor = results[static_cast<size_t>(spec.index)];
    std::string has = describe(tensor.dtype(), shape_of(tensor));
    std::string wanted = describe(spec.dtype, spec.shape);
    if (has != wanted) problems.add(spec.name, " became ", has, "; the metadata says ", wanted);
    if (!tensor.IsContiguous()) problems.add(spec.name, " is not contiguous");
    chosen.push_back(tensor);
  }
  problems.raise(WHERRY_INCOMPATIBLE, group.pack + " does not do what the library's metadata says");
  return chosen;
}

class PackedWeights {
 public:
  PackedWeights(const Metadata& metadata, const TensorCache& cache, const WeightsOptions& options)
      : metadata_(metadata), cache_(cache), options_(options), groups_(groups_of(metadata)) {
    for (const PackGroup& group : groups_) {
      for (size_t i : group.params) {
        const ParamSpec& spec = metadata.params[i];
        offsets_[i] = layout_.add(spec.name + " " + describe(spec.dtype, spec.shape),
                                  tensor_bytes(spec.dtype, spec.shape));
      }
    }
  }

  void load(const PackFunction& pack, std::vector<ffi::Tensor>& params) {
    if (groups_.empty()) return;
    // A file saves memory where it is mapped; a device has a copy of its own in any case.
    if (options_.pack_dir.empty() || !is_host(options_.device)) {
      pack_in_memory(pack, params);
    } else {
      map(pack, params);
    }
  }

 private:
  void pack_in_memory(const PackFunction& pack, std::vector<ffi::Tensor>& params) {
    for (const PackGroup& group : groups_) {
      auto tensors = run_group(group, metadata_, cache_, options_.device, pack);
      for (size_t k = 0; k < tensors.size(); ++k) params[group.params[k]] = tensors[k];
    }
  }

  void map(const PackFunction& pack, std::vector<ffi::Tensor>& params) {
    uint64_t key = packed_key(metadata_, cache_, options_.library_hash);
    std::string path = packed_path(options_.pack_dir, key);
    std::shared_ptr<const MappedFile> file = open_packed(path, key, layout_);
    if (!file) {
      write(path, key, pack);
      file = open_packed(path, key, layout_);
      if (!file) throw Error(WHERRY_INTERNAL, path + " changed while it was written");
    }
    for (const auto& [i, offset] : offsets_) {
      const ParamSpec& spec = metadata_.params[i];
      ffi::Tensor tensor = tensor_over(file, file->data() + offset, spec.shape, spec.dtype);
      params[i] = to_device(tensor, options_.device);
    }
  }

  void write(const std::string& path, uint64_t key, const PackFunction& pack) {
    PackedWriter writer(path, key, layout_);
    for (const PackGroup& group : groups_) {
      auto tensors = run_group(group, metadata_, cache_, options_.device, pack);
      for (size_t k = 0; k < tensors.size(); ++k) {
        ffi::Tensor host = to_host(tensors[k]);
        writer.write(offsets_[group.params[k]], host.data_ptr(),
                     static_cast<int64_t>(ffi::GetDataSize(*host.GetDLTensorPtr())));
      }
    }
    writer.commit();
  }

  const Metadata& metadata_;
  const TensorCache& cache_;
  const WeightsOptions& options_;
  std::vector<PackGroup> groups_;
  PackedLayout layout_;
  std::map<size_t, int64_t> offsets_;  // parameter -> bytes
};

}  // namespace

uint64_t packed_key(const Metadata& metadata, const TensorCache& cache, uint64_t library_hash) {
  Hash hash;
  hash.number(library_hash).text(metadata.json).text(cache.index_text());
  for (const Shard& shard : cache.shards()) {
    hash.number(std::filesystem::file_size(shard.path));
    auto time = std::filesystem::last_write_time(shard.path).time_since_epoch().count();
    hash.number(static_cast<uint64_t>(time));
  }
  return hash.value();
}

std::vector<ffi::Tensor> load_params(const Metadata& metadata, const TensorCache& cache,
                                     const WeightsOptions& options, const PackFunction& pack) {
  check_stored(metadata, cache);
  std::vector<ffi::Tensor> params(metadata.params.size());
  PackedWeights(metadata, cache, options).load(pack, params);
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamSpec& spec = metadata.params[i];
    if (spec.pack.empty()) {
      params[i] = to_device(cache.load(*cache.find(spec.from[0])), options.device);
    }
  }
  return params;
}

}  // namespace wherry
