#include "vm/vm_model.h"

#include <cstdlib>  // defines __GLIBC__ if the C library is glibc
#include <memory>
#include <set>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/error.h"
#include "support/hash.h"
#include "vm/threads.h"
#include "vm/virtual_machine.h"
#include "vm/vm_session.h"
#include "weights/weights.h"

namespace wherry {

namespace {

class VmModel : public Model {
 public:
  explicit VmModel(std::shared_ptr<const VmShared> shared) : shared_(std::move(shared)) {}
  const Metadata& metadata() const override { return shared_->metadata; }
  uint64_t identity() const override { return shared_->identity; }
  std::unique_ptr<Session> open(const SessionLimits& limits) const override {
    return open_vm_session(shared_, limits);
  }

 private:
  std::shared_ptr<const VmShared> shared_;
};

// Returns the results of a pack function, which are a tensor or a tuple of tensors.
std::vector<ffi::Tensor> tensors_of(const ffi::Any& result, const std::string& name) {
  if (auto tensor = result.as<ffi::Tensor>()) return {*tensor};
  if (auto tuple = result.try_cast<ffi::Array<ffi::Tensor>>())
    return {tuple->begin(), tuple->end()};
  throw Error(WHERRY_INCOMPATIBLE, name + " returns neither a tensor nor a tuple of tensors");
}

// Checks, before any weight is read, that the library has every function that the metadata names.
void check_functions(const Metadata& metadata, const VirtualMachine& vm) {
  Problems problems;
  std::set<std::string> names;
  for (Entry entry : metadata.entries) names.insert(name_of(entry));
  for (const ParamSpec& spec : metadata.params) {
    if (!spec.pack.empty()) names.insert(spec.pack);
  }
  for (const std::string& name : names) {
    try {
      vm.function(name);
    } catch (const Error& error) {
      problems.add(error.what());
    }
  }
  problems.raise(WHERRY_INCOMPATIBLE, "the library is not what its metadata says");
}

}  // namespace

// A compiled library whose weights are being loaded.
struct Opened {
  Opened(const std::string& lib, const std::string& device, const ModelOptions& options)
      : shared(std::make_shared<VmShared>()) {
    shared->device = parse_device(device);
    shared->threads = options.threads > 0 ? options.threads : default_threads();
    shared->graphs = options.cuda_graphs;
    shared->executable = open_executable(lib);
    vm = std::make_unique<VirtualMachine>(shared->executable, shared->device);
    shared->metadata = parse_metadata(vm->function("_metadata")().cast<ffi::String>());
    check_functions(shared->metadata, *vm);
    hash = hash_of_library(lib);
  }

  // Returns a function that packs weights; it refers to this object.
  PackFunction packer() {
    return [this](const std::string& name, const std::vector<ffi::Tensor>& from) {
      // Frees the buffers of the last call, whose results are stored by now.
      release_pooled_memory();
      configure_kernel_threads(shared->threads);
      ffi::Function function = vm->function(name);
      std::vector<ffi::AnyView> arguments(from.begin(), from.end());
      ffi::Any result;
      function.CallPacked(arguments.data(), static_cast<int32_t>(arguments.size()), &result);
      return tensors_of(result, name);
    };
  }

  std::shared_ptr<const Model> finish(const std::vector<ffi::Tensor>& params) {
    for (const ffi::Tensor& tensor : params) shared->params.push_back(tensor);
    vm.reset();  // the VM references the results of its last call
    release_pooled_memory();
#ifdef __GLIBC__
    malloc_trim(0);  // needed because glibc keeps freed memory below a block in use
#endif
    return std::make_shared<VmModel>(shared);
  }

  std::shared_ptr<VmShared> shared;
  std::unique_ptr<VirtualMachine> vm;
  uint64_t hash = 0;  // hash of the library's bytes
};

std::shared_ptr<const Model> load_vm_model(const std::string& lib, const std::string& weights,
                                           const std::string& device, const ModelOptions& options) {
  Opened opened(lib, device, options);
  const VmShared& shared = *opened.shared;
  WeightsOptions to_load;
  to_load.device = shared.device;
  to_load.pack_dir = options.pack_dir;
  to_load.threads = shared.threads;
  to_load.check = options.check_weights;
  to_load.library_hash = opened.hash;
  TensorCache cache = TensorCache::open(weights);
  opened.shared->identity = packed_key(shared.metadata, cache, opened.hash);
  return opened.finish(load_params(shared.metadata, cache, to_load, opened.packer()));
}

struct VmLoader::Parts {
  Parts(const std::string& lib, const std::string& index, const std::string& device,
        const ModelOptions& options)
      : opened(lib, device, options),
        cache(TensorCache::parse(index)),
        params(opened.shared->metadata, cache, opened.shared->device, opened.packer()) {
    const std::string& metadata = opened.shared->metadata.json;
    opened.shared->identity = Hash().number(opened.hash).text(metadata).text(index).value();
  }

  Opened opened;
  TensorCache cache;
  StreamedParams params;
};

VmLoader::VmLoader(const std::string& lib, const std::string& index, const std::string& device,
                   const ModelOptions& options)
    : parts_(std::make_unique<Parts>(lib, index, device, options)) {}
VmLoader::~VmLoader() = default;

const TensorCache& VmLoader::index() const { return parts_->cache; }
StreamedParams& VmLoader::params() { return parts_->params; }
std::shared_ptr<const Model> VmLoader::finish() {
  return parts_->opened.finish(parts_->params.finish());
}

}  // namespace wherry
