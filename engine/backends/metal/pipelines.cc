#include "backends/metal/pipelines.h"

#include <tvm/ffi/error.h>

#include <utility>
#include <vector>

#include "backends/metal/api.h"
#include "backends/parallel.h"
#include "support/hash.h"

namespace wherry::metal {

namespace {

// Compiled machine code depends on the GPU and on the system's version.
uint64_t identity_of(const MetalDevice& device, uint64_t library) {
  return Hash().number(library).text(device.name()).text(system_version()).value();
}

// Turns fast math off: every kernel must give the same bits for a row, and infinities mask.
Own compile_options() {
  const Api& metal = Api::get();
  Own options = make("MTLCompileOptions");
  if (responds(options.get(), metal.set_math_mode.selector())) {
    metal.set_math_mode(options.get(), kMathModeSafe);
  } else {
    metal.set_fast_math(options.get(), 0);
  }
  return options;
}

Own compile(Id device, const std::string& name, const std::string& source) {
  const Api& metal = Api::get();
  Own options = compile_options();
  Id error = nullptr;
  Own library(metal.new_library(device, string_of(source), options.get(), &error));
  if (!library) {
    TVM_FFI_THROW(RuntimeError) << "Metal's compiler refuses kernel " << name << ": "
                                << text_of_error(error);
  }
  Own function(metal.new_function(library.get(), string_of(name)));
  if (!function) TVM_FFI_THROW(RuntimeError) << "Metal: the source of " << name << " lacks it";
  return function;
}

}  // namespace

Pipelines::Pipelines(MetalDevice& device, const std::map<std::string, KernelInfo>& kernels,
                     uint64_t library)
    : device_(device) {
  AutoreleasePool pool;
  const bool simdgroups = device.supports_family(kFamilyApple7);
  std::vector<std::pair<const std::string*, Built*>> jobs;
  for (const auto& [name, info] : kernels) {
    if (info.simdgroups() && !simdgroups) {
      TVM_FFI_THROW(RuntimeError)
          << "the library does not run on " << device.name() << ": kernel " << name
          << " uses SIMD groups, which GPUs have from A14 and M1 (MTLGPUFamilyApple7). Compile "
             "with --target iphone";
    }
    jobs.emplace_back(&name, &built_[name]);
  }
  const Archive archive(device.handle(), identity_of(device, library));
  backends::in_parallel(jobs.size(), [&](size_t i) {
    AutoreleasePool own;
    const auto& [name, built] = jobs[i];
    *built = build(*name, kernels.at(*name).source, archive);
  });
  bool all_archived = true;
  std::vector<Id> descriptors;
  for (const auto& [name, built] : built_) {
    all_archived = all_archived && built.archived;
    descriptors.push_back(built.descriptor.get());
  }
  if (!all_archived) archive.write(descriptors);
}

Pipelines::Built Pipelines::build(const std::string& name, const std::string& source,
                                  const Archive& archive) const {
  const Api& metal = Api::get();
  Built built;
  built.descriptor = make("MTLComputePipelineDescriptor");
  Own function = compile(device_.handle(), name, source);
  metal.set_function(built.descriptor.get(), function.get());
  metal.set_label(built.descriptor.get(), string_of(name));
  if (archive.known() != nullptr) {
    Id archives = metal.array_with_object(class_of("NSArray"), archive.known());
    metal.set_archives(built.descriptor.get(), archives);
    Id error = nullptr;
    set_state(built, Own(metal.new_pipeline(device_.handle(), built.descriptor.get(),
                                            kOptionFailOnArchiveMiss, nullptr, &error)));
    built.archived = static_cast<bool>(built.state);
    metal.set_archives(built.descriptor.get(), nullptr);
  }
  if (!built.state) set_state(built, state_of(name, built.descriptor.get()));
  return built;
}

Own Pipelines::state_of(const std::string& name, Id descriptor) const {
  Id error = nullptr;
  Own state(Api::get().new_pipeline(device_.handle(), descriptor, kOptionNone, nullptr, &error));
  if (!state) {
    TVM_FFI_THROW(RuntimeError) << "Metal makes no pipeline of kernel " << name << ": "
                                << text_of_error(error);
  }
  return state;
}

void Pipelines::set_state(Built& built, Own state) const {
  built.most = state ? Api::get().max_threads(state.get()) : 0;
  built.state = std::move(state);
}

Own Pipelines::of(const std::string& name, UInt threads) {
  std::lock_guard<std::mutex> lock(mutex_);
  Built& built = built_.at(name);
  if (threads > built.most) {
    AutoreleasePool pool;
    Api::get().set_max_threads(built.descriptor.get(), threads);
    set_state(built, state_of(name, built.descriptor.get()));
  }
  if (threads > built.most) {
    TVM_FFI_THROW(RuntimeError) << "kernel " << name << " has groups of " << threads << " threads; "
                                << device_.name() << " allows it " << built.most;
  }
  return Own::retained(built.state.get());
}

}  // namespace wherry::metal
