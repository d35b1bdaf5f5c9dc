#include "weights/weights.h"

#include <filesystem>
#include <map>
#include <utility>

#include "support/checksum.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/parallel.h"
#include "system/path.h"
#include "weights/pack_groups.h"
#include "weights/packed_file.h"

namespace wherry {

namespace {

// Calls a group's function and checks its results; returns one tensor for each of group.params.
std::vector<ffi::Tensor> run_group(const PackGroup& group, const Metadata& metadata,
                                   const TensorCache& cache, DLDevice device,
                                   const PackFunction& pack) {
  std::vector<ffi::Tensor> from;
  for (const std::string& name : group.from) {
    from.push_back(to_device(cache.load(*cache.find(name)), device));
  }
  return chosen_results(group, metadata, pack(group.pack, from));
}

// Loads the parameters, through a packed file if there is a folder for it. On the host the file has
// all packed tensors; for a device, which needs its own copies anyway, the file has checksums
// alone.
class Loader {
 public:
  Loader(const Metadata& metadata, const TensorCache& cache, const WeightsOptions& options,
         const PackFunction& pack)
      : metadata_(metadata),
        cache_(cache),
        options_(options),
        pack_(pack),
        groups_(groups_of(metadata)),
        maps_(!options.pack_dir.empty() && is_host(options.device)),
        params_(metadata.params.size()) {
    for (size_t i = 0; i < metadata.params.size(); ++i) {
      const ParamSpec& spec = metadata.params[i];
      if (maps_ && !spec.pack.empty()) {
        blocks_[i] = layout_.add(spec.name + " " + describe(spec.dtype, spec.shape),
                                 tensor_bytes(spec.dtype, spec.shape));
        continue;
      }
      for (const std::string& name : spec.from) outside_.try_emplace(name, 0);
    }
    for (auto& [name, entry] : outside_) {
      entry = layout_.add_outside(name, cache.find(name)->nbytes);
    }
  }

  std::vector<ffi::Tensor> load() {
    if (!options_.pack_dir.empty()) use_file();
    if (!maps_) pack_in_memory();
    for (size_t i = 0; i < params_.size(); ++i) {
      const ParamSpec& spec = metadata_.params[i];
      if (!spec.pack.empty()) continue;
      params_[i] = to_device(cache_.load(*cache_.find(spec.from[0])), options_.device);
    }
    return std::move(params_);
  }

 private:
  std::vector<ffi::Tensor> run(const PackGroup& group) const {
    return run_group(group, metadata_, cache_, options_.device, pack_);
  }

  void pack_in_memory() {
    for (const PackGroup& group : groups_) {
      auto tensors = run(group);
      for (size_t k = 0; k < tensors.size(); ++k) params_[group.params[k]] = tensors[k];
    }
  }

  void use_file() {
    const uint64_t key = packed_key(metadata_, cache_, options_.library_hash);
    const std::string path = packed_path(options_.pack_dir, key);
    auto file = PackedFile::open(path, key, layout_);
    if (file && options_.check) check_outside(*file);
    if (!file || (options_.check && !file->intact(options_.threads))) {
      write(path, key);
      file = PackedFile::open(path, key, layout_);
      if (!file) throw Error(WHERRY_INTERNAL, path + " changed while it was written");
    }
    for (const auto& [i, entry] : blocks_) {
      const ParamSpec& spec = metadata_.params[i];
      params_[i] = tensor_over(file->mapping(), file->block(entry), spec.shape, spec.dtype);
    }
  }

  // Checks that stored tensors did not change since the packed file was written.
  void check_outside(const PackedFile& file) const {
    std::vector<std::string> names;
    std::vector<StoredBytes> bytes;
    for (const auto& [name, entry] : outside_) {
      names.push_back(name);
      bytes.push_back(cache_.bytes(*cache_.find(name)));
    }
    Problems problems;
    for (size_t i : failing(names.size(), options_.threads, [&](size_t i) {
           return checksum64(bytes[i].data, bytes[i].size) == file.checksum(outside_.at(names[i]));
         })) {
      problems.add(names[i], " in ", cache_.shards()[cache_.find(names[i])->shard].path);
    }
    problems.raise(WHERRY_INCOMPATIBLE, "weights have changed since they were first loaded");
  }

  void write(const std::string& path, uint64_t key) {
    PackedWriter writer(path, key, layout_);
    for (const auto& [name, entry] : outside_) {
      StoredBytes bytes = cache_.bytes(*cache_.find(name));
      writer.set_checksum(entry, checksum64(bytes.data, bytes.size));
    }
    if (maps_) {
      for (const PackGroup& group : groups_) {
        auto tensors = run(group);
        for (size_t k = 0; k < tensors.size(); ++k) {
          writer.write(blocks_[group.params[k]], to_host(tensors[k]).data_ptr());
        }
      }
    }
    writer.commit();
  }

  const Metadata& metadata_;
  const TensorCache& cache_;
  const WeightsOptions& options_;
  const PackFunction& pack_;
  std::vector<PackGroup> groups_;
  bool maps_;  // whether packed tensors are mapped from the packed file
  PackedLayout layout_;
  std::map<size_t, size_t> blocks_;        // maps a parameter to an entry of the layout
  std::map<std::string, size_t> outside_;  // maps a stored tensor to an entry of the layout
  std::vector<ffi::Tensor> params_;
};

}  // namespace

uint64_t packed_key(const Metadata& metadata, const TensorCache& cache, uint64_t library_hash) {
  Hash hash;
  hash.number(library_hash).text(metadata.json).text(cache.index_text());
  for (const Shard& shard : cache.shards()) {
    hash.number(std::filesystem::file_size(path_of(shard.path)));
    auto time = std::filesystem::last_write_time(path_of(shard.path)).time_since_epoch().count();
    hash.number(static_cast<uint64_t>(time));
  }
  return hash.value();
}

std::vector<ffi::Tensor> load_params(const Metadata& metadata, const TensorCache& cache,
                                     const WeightsOptions& options, const PackFunction& pack) {
  check_stored(metadata, cache);
  return Loader(metadata, cache, options, pack).load();
}

}  // namespace wherry
