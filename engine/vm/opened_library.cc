#include "vm/opened_library.h"

#include <cstdlib>  // defines __GLIBC__ if the C library is glibc
#include <set>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/error.h"
#include "vm/threads.h"

namespace wherry {

namespace {

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

OpenedLibrary::OpenedLibrary(const std::string& lib, const std::string& device,
                             const ModelOptions& options, Metadata (*parse)(const std::string&))
    : shared(std::make_shared<VmShared>()) {
  shared->device = parse_device(device);
  shared->threads = options.threads > 0 ? options.threads : default_threads();
  shared->graphs = options.cuda_graphs;
  shared->executable = open_executable(lib);
  vm = std::make_unique<VirtualMachine>(shared->executable, shared->device);
  shared->metadata = parse(vm->function("_metadata")().cast<ffi::String>());
  check_functions(shared->metadata, *vm);
  hash = hash_of_library(lib);
}

PackFunction OpenedLibrary::packer() {
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

void OpenedLibrary::load(const std::string& weights, const ModelOptions& options) {
  WeightsOptions to_load;
  to_load.device = shared->device;
  to_load.pack_dir = options.pack_dir;
  to_load.threads = shared->threads;
  to_load.check = options.check_weights;
  to_load.library_hash = hash;
  TensorCache cache = TensorCache::open(weights);
  shared->identity = packed_key(shared->metadata, cache, hash);
  finish(load_params(shared->metadata, cache, to_load, packer()));
}

void OpenedLibrary::finish(const std::vector<ffi::Tensor>& params) {
  for (const ffi::Tensor& tensor : params) shared->params.push_back(tensor);
  vm.reset();  // the VM references the results of its last call
  release_pooled_memory();
#ifdef __GLIBC__
  malloc_trim(0);  // needed because glibc keeps freed memory below a block in use
#endif
}

}  // namespace wherry
