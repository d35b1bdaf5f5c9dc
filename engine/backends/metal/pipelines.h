// A library's kernels, compiled for a Metal device.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_PIPELINES_H_
#define WHERRY_ENGINE_BACKENDS_METAL_PIPELINES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "backends/metal/archive.h"
#include "backends/metal/device.h"
#include "backends/metal/kernels.h"
#include "backends/metal/objc.h"

namespace wherry::metal {

class Pipelines {
 public:
  // Compiles all kernels, a few at the same time; an archive has their machine code from the second
  // start on. library: a hash of the kernels. Throws a RuntimeError of tvm-ffi with the compiler's
  // messages, or with what the device lacks.
  Pipelines(MetalDevice& device, const std::map<std::string, KernelInfo>& kernels,
            uint64_t library);

  // Returns a kernel's MTLComputePipelineState for groups of this many threads. A kernel that uses
  // many registers is compiled again, for fewer of them, if its groups would be too large. Throws a
  // RuntimeError if they are too large still.
  Own of(const std::string& name, UInt threads);

 private:
  struct Built {
    Own descriptor;         // MTLComputePipelineDescriptor
    Own state;              // MTLComputePipelineState
    UInt most = 0;          // threads of a group
    bool archived = false;  // whether its code came from the archive
  };
  Built build(const std::string& name, const std::string& source, const Archive& archive) const;
  Own state_of(const std::string& name, Id descriptor) const;
  void set_state(Built& built, Own state) const;

  MetalDevice& device_;
  std::mutex mutex_;  // guards the states
  std::map<std::string, Built> built_;
};

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_PIPELINES_H_
