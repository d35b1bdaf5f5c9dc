#include "vm_model.h"

#include <tvm/ffi/extra/module.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "device.h"
#include "error.h"
#include "hash.h"
#include "threads.h"
#include "weights.h"

namespace wherry {

namespace {

constexpr char kSystemPrefix[] = "system:";
constexpr int kPooledAllocator = 2;  // TVM's AllocatorType::kPooled
constexpr DLDataType kInt32{kDLInt, 32, 1};

bool is_system(const std::string& lib) { return lib.rfind(kSystemPrefix, 0) == 0; }

ffi::Module open_library(const std::string& lib) {
  if (is_system(lib)) {
    auto load = ffi::Function::GetGlobalRequired("ffi.SystemLib");
    return load(lib.substr(sizeof kSystemPrefix - 1)).cast<ffi::Module>();
  }
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(lib, error);  // dlopen searches for names
  if (!std::filesystem::is_regular_file(path, error)) {
    throw Error(CORE_NOT_FOUND, "no compiled library " + lib);
  }
  return ffi::Module::LoadFromFile(path.string());
}

// The VM's executable in a library. Each call of its result makes a VM of its own.
ffi::Function open_executable(const std::string& lib) {
  try {
    ffi::Module library = open_library(lib);
    auto load = library->GetFunction("vm_load_executable");
    if (load.has_value()) {
      // The function does not keep the library's code in memory.
      return ffi::Function::FromTyped([library, load = *load]() -> ffi::Any { return load(); });
    }
  } catch (const ffi::Error& error) {
    const bool no_runtime = !ffi::Function::GetGlobal("vm.builtin.copy").has_value();
    throw Error(CORE_INCOMPATIBLE,
                concat(lib, " cannot be loaded: ", std::string(error.message()),
                       no_runtime ? "\nTVM's run time is not in this process: load libtvm_runtime "
                                    "(with RTLD_GLOBAL) first"
                                  : ""));
  }
  throw Error(CORE_INCOMPATIBLE, lib + " is not a compiled model: it holds no Relax VM executable");
}

// One VM: it has a stack of frames, so two threads must not share it.
class VirtualMachine {
 public:
  VirtualMachine(const ffi::Function& executable, DLDevice device)
      : module_(executable().cast<ffi::Module>()) {
    ffi::Function initialise = function("vm_initialization");
    auto kind = static_cast<int>(device.device_type);
    if (is_host(device)) {
      initialise(kind, device.device_id, kPooledAllocator);
    } else {  // a VM on a device wants the host too, for shapes
      initialise(kind, device.device_id, kPooledAllocator, static_cast<int>(kDLCPU), 0,
                 kPooledAllocator);
    }
  }

  ffi::Function function(const std::string& name) const {
    auto found = module_->GetFunction(name);
    if (!found.has_value()) {
      throw Error(CORE_INCOMPATIBLE, concat("the library has no function \"", name, "\""));
    }
    return *found;
  }

 private:
  ffi::Module module_;
};

// An int32 buffer on the device, and views of its first elements.
class Staging {
 public:
  Staging(int64_t capacity, DLDevice device)
      : host_(allocate_host({capacity}, kInt32)), there_(to_device(host_, device)) {}

  ffi::Tensor view(const std::vector<int32_t>& values) {
    auto n = static_cast<int64_t>(values.size());
    if (n > host_.size(0)) {
      throw Error(CORE_INTERNAL, concat("a batch has ", n, " elements; the session was opened for ",
                                        host_.size(0)));
    }
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(host_.data_ptr()));
    ffi::Tensor here = prefix(host_, n);
    if (is_host(there_.device())) return here;
    ffi::Tensor there = prefix(there_, n);
    ffi::Function::GetGlobalRequired("runtime.TVMTensorCopyFromTo")(here, there);
    return there;
  }

 private:
  static ffi::Tensor prefix(const ffi::Tensor& tensor, int64_t n) {
    const int64_t stride = 1;
    return tensor.as_strided(ffi::ShapeView(&n, 1), ffi::ShapeView(&stride, 1));
  }

  ffi::Tensor host_, there_;
};

// TVM's pooled allocator keeps a freed buffer of each size it ever saw, and the sizes follow the
// number of rows: after many different ones it is told to give them back.
class AllocatorTrimmer {
 public:
  void before_step(size_t rows) {
    constexpr size_t kDifferentSizes = 64;
    if (!seen_.insert(rows).second || seen_.size() <= kDifferentSizes) return;
    seen_ = {rows};
    auto clear = ffi::Function::GetGlobal("vm.builtin.memory_manager.clear");
    if (clear.has_value()) (*clear)();
  }

 private:
  std::set<size_t> seen_;
};

struct VmShared {
  Metadata metadata;
  ffi::Function executable;
  ffi::Array<ffi::Tensor> params;
  DLDevice device{kDLCPU, 0};
  int threads = 1;
};

class VmSession : public Session {
 public:
  VmSession(std::shared_ptr<const VmShared> shared, const SessionLimits& limits)
      : shared_(std::move(shared)),
        vm_(shared_->executable, shared_->device),
        forward_(vm_.function("forward")),
        tokens_(limits.rows, shared_->device),
        positions_(limits.rows, shared_->device),
        sequences_(limits.rows, shared_->device),
        query_indptr_(limits.sequences + 1, shared_->device),
        page_indptr_(limits.sequences + 1, shared_->device),
        page_ids_(limits.page_ids, shared_->device),
        logit_rows_(limits.rows, shared_->device) {
    for (const StateSpec& spec : shared_->metadata.state) {
      std::vector<int64_t> shape = spec.page_shape;
      shape.insert(shape.begin(), limits.pages);
      for (int64_t layer = 0; layer < spec.layers; ++layer) {
        state_.push_back(allocate(shape, spec.dtype, shared_->device));
      }
    }
  }

  void launch(const Batch& batch) override {
    configure_kernel_threads(shared_->threads);
    trimmer_.before_step(batch.tokens.size());
    logits_ = ffi::Tensor();
    rows_ = static_cast<int64_t>(batch.logit_rows.size());
    logits_ = forward_(tokens_.view(batch.tokens), positions_.view(batch.positions),
                       sequences_.view(batch.sequences), query_indptr_.view(batch.query_indptr),
                       page_indptr_.view(batch.page_indptr), page_ids_.view(batch.page_ids),
                       logit_rows_.view(batch.logit_rows), state_, shared_->params)
                  .cast<ffi::Tensor>();
  }

  Logits collect() override {
    if (!logits_.defined()) throw Error(CORE_INTERNAL, "collect without a launch");
    logits_ = to_host(logits_);
    const int64_t vocab = shared_->metadata.vocab_size;
    const std::string has = describe(logits_.dtype(), shape_of(logits_));
    const std::string wanted = describe(DLDataType{kDLFloat, 32, 1}, {rows_, vocab});
    if (has != wanted || !logits_.IsContiguous()) {
      throw Error(CORE_INCOMPATIBLE, concat("forward returned ", has, ", not ", wanted));
    }
    const char* data = static_cast<const char*>(logits_.data_ptr()) + logits_.byte_offset();
    return {reinterpret_cast<const float*>(data), rows_, vocab};
  }

 private:
  std::shared_ptr<const VmShared> shared_;
  VirtualMachine vm_;
  ffi::Function forward_;
  Staging tokens_, positions_, sequences_, query_indptr_, page_indptr_, page_ids_, logit_rows_;
  ffi::Array<ffi::Tensor> state_;
  AllocatorTrimmer trimmer_;
  ffi::Tensor logits_;  // holds the memory that collect() points into
  int64_t rows_ = 0;
};

class VmModel : public Model {
 public:
  explicit VmModel(std::shared_ptr<const VmShared> shared) : shared_(std::move(shared)) {}
  const Metadata& metadata() const override { return shared_->metadata; }
  std::unique_ptr<Session> open(const SessionLimits& limits) const override {
    return std::make_unique<VmSession>(shared_, limits);
  }

 private:
  std::shared_ptr<const VmShared> shared_;
};

// The results of a pack function: a tensor, or a tuple of them.
std::vector<ffi::Tensor> tensors_of(const ffi::Any& result, const std::string& name) {
  if (auto tensor = result.as<ffi::Tensor>()) return {*tensor};
  if (auto tuple = result.try_cast<ffi::Array<ffi::Tensor>>())
    return {tuple->begin(), tuple->end()};
  throw Error(CORE_INCOMPATIBLE, name + " returns neither a tensor nor a tuple of tensors");
}

// Every function that the metadata names must be there before the first weight is read.
void check_functions(const Metadata& metadata, const VirtualMachine& vm) {
  Problems problems;
  std::set<std::string> names{"forward"};
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
  problems.raise(CORE_INCOMPATIBLE, "the library is not what its metadata says");
}

uint64_t hash_of_library(const std::string& lib) {
  if (is_system(lib)) return Hash().text(lib).value();
  auto file = MappedFile::open(lib);
  return Hash().bytes(file->data(), file->size()).value();
}

}  // namespace

std::shared_ptr<const Model> load_vm_model(const std::string& lib, const std::string& weights,
                                           const std::string& device, const ModelOptions& options) {
  auto shared = std::make_shared<VmShared>();
  shared->device = parse_device(device);
  shared->threads = options.threads > 0 ? options.threads : default_threads();
  shared->executable = open_executable(lib);
  VirtualMachine vm(shared->executable, shared->device);
  shared->metadata = parse_metadata(vm.function("_metadata")().cast<ffi::String>());
  check_functions(shared->metadata, vm);

  WeightsOptions to_load;
  to_load.device = shared->device;
  to_load.pack_dir = options.pack_dir;
  if (!options.pack_dir.empty()) to_load.library_hash = hash_of_library(lib);
  PackFunction pack = [&](const std::string& name, const std::vector<ffi::Tensor>& from) {
    configure_kernel_threads(shared->threads);
    ffi::Function function = vm.function(name);
    std::vector<ffi::AnyView> arguments(from.begin(), from.end());
    ffi::Any result;
    function.CallPacked(arguments.data(), static_cast<int32_t>(arguments.size()), &result);
    return tensors_of(result, name);
  };
  TensorCache cache = TensorCache::open(weights);
  for (const ffi::Tensor& tensor : load_params(shared->metadata, cache, to_load, pack)) {
    shared->params.push_back(tensor);
  }
  return std::make_shared<VmModel>(shared);
}

}  // namespace wherry
