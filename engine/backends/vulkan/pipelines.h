// Compiles a library's kernels for one Vulkan device, with a cache file of the driver's binaries.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_PIPELINES_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_PIPELINES_H_

#include <map>
#include <string>

#include "backends/vulkan/device.h"
#include "backends/vulkan/kernels.h"

namespace wherry::vulkan {

class Pipelines {
 public:
  // Compiles all kernels, a few in parallel, or loads them from the cache file. library: a hash of
  // the kernels, for the file's name. Throws a RuntimeError of tvm-ffi with every limit of the
  // device that a kernel exceeds, and the command that compiles a fitting library.
  Pipelines(VulkanDevice& device, const std::map<std::string, KernelInfo>& kernels,
            uint64_t library);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  const Pipeline& of(const std::string& name) const { return built_.at(name); }

 private:
  void build_all(const std::map<std::string, KernelInfo>& kernels, VkPipelineCache cache);
  void release();

  VulkanDevice& device_;
  std::map<std::string, Pipeline> built_;
};

}  // namespace wherry::vulkan

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_PIPELINES_H_
