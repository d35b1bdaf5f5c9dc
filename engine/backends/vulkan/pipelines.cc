#include "backends/vulkan/pipelines.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "backends/files.h"
#include "backends/parallel.h"
#include "support/hash.h"

namespace wherry::vulkan {

namespace {

std::string count(uint64_t n, const char* what) { return std::to_string(n) + " " + what; }

uint32_t threads_of(const KernelInfo& info) {
  return info.threads[0] * info.threads[1] * info.threads[2];
}

// Returns the first edition that the device supports; null if it supports none or the kernel has no
// editions.
const Edition* edition_for(const KernelInfo& info, const PhysicalDevice& device) {
  for (const Edition& edition : info.editions) {
    if (device.multiplies({edition.m, edition.n, edition.k}, edition.lanes, threads_of(info))) {
      return &edition;
    }
  }
  return nullptr;
}

// Returns one line of text if the device lacks the cooperative matrices of some kernels, else an
// empty string.
std::string matrix_problem(const std::map<std::string, KernelInfo>& kernels,
                           const PhysicalDevice& device) {
  for (const auto& [name, info] : kernels) {
    if (info.editions.empty() || edition_for(info, device) != nullptr) continue;
    std::string has, takes;
    for (const MatrixShape& own : device.matrices) {
      has += (has.empty() ? "" : ", ") + std::to_string(own.m) + "x" + std::to_string(own.n) + "x" +
             std::to_string(own.k);
    }
    for (const Edition& edition : info.editions) {
      takes += (takes.empty() ? "" : ", ") + std::to_string(edition.m) + "x" +
               std::to_string(edition.n) + "x" + std::to_string(edition.k) + " by " +
               std::to_string(edition.lanes) + " threads";
    }
    std::string lacks = has.empty()
                            ? "not (VK_KHR_cooperative_matrix and what it takes)"
                            : "as " + has + " by " + std::to_string(device.least_lanes) + " to " +
                                  std::to_string(device.most_lanes) + " threads alone";
    return "\n  kernel " + name + " multiplies float16 matrices (" + takes +
           "), which the device does " + lacks + ": compile with --target vulkan";
  }
  return "";
}

// Returns one line of text for each device limit that the kernel exceeds.
std::string problems_of(const std::string& name, const KernelInfo& info,
                        const PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  std::string problems;
  auto exceeds = [&](uint64_t has, uint64_t most, const char* what, const char* fix) {
    if (has > most) {
      problems += "\n  kernel " + name + " takes " + count(has, what) + ", the device allows " +
                  std::to_string(most) + ": " + fix;
    }
  };
  const auto& threads = info.threads;
  uint64_t all = uint64_t{threads[0]} * threads[1] * threads[2];
  const char* fewer = "compile with --target vulkan:64";
  exceeds(all, limits.maxComputeWorkGroupInvocations, "threads a group", fewer);
  for (size_t i = 0; i < 3; ++i) {
    exceeds(threads[i], limits.maxComputeWorkGroupSize[i], "threads along an axis", fewer);
  }
  exceeds(info.shared_memory, limits.maxComputeSharedMemorySize, "bytes of shared memory",
          "use --target opencl or cpu");
  exceeds(
      info.tensors(),
      std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers),
      "tensors", "use --target opencl or cpu");
  if (info.half && !device.half) {
    problems += "\n  kernel " + name +
                " keeps float16 in memory, which the device cannot (storageBuffer16BitAccess): "
                "compile with --quant q4f32_1, or use --target opencl";
  }
  return problems;
}

// Returns the header of a cached file: the identity of device and driver, the data's length and
// hash. Drivers check only their own header and may crash on damaged data.
std::string header(const VkPhysicalDeviceProperties& device, const std::string& data) {
  std::string text = "wherry-vulkan-1 ";
  auto add = [&text](uint64_t number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  text.append(reinterpret_cast<const char*>(device.pipelineCacheUUID), VK_UUID_SIZE);
  for (uint32_t id : {device.vendorID, device.deviceID, device.driverVersion}) add(id);
  add(data.size());
  add(Hash().text(data).value());
  return text;
}

std::string read_file(const std::string& name, const VkPhysicalDeviceProperties& device) {
  std::string all = backends::read_cached(name);
  size_t size = header(device, "").size();
  if (all.size() <= size) return "";
  std::string data = all.substr(size);
  return header(device, data) == all.substr(0, size) ? data : "";
}

VkPipelineCache make_cache(VulkanDevice& device, const std::string& data) {
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  VkPipelineCache cache = VK_NULL_HANDLE;
  check(device.functions().CreatePipelineCache(device.handle(), &info, nullptr, &cache),
        "vkCreatePipelineCache");
  return cache;
}

std::string content(VulkanDevice& device, VkPipelineCache cache) {
  const DeviceFunctions& vk = device.functions();
  size_t size = 0;
  if (vk.GetPipelineCacheData(device.handle(), cache, &size, nullptr) != VK_SUCCESS) return "";
  std::string data(size, '\0');
  if (vk.GetPipelineCacheData(device.handle(), cache, &size, data.data()) != VK_SUCCESS) return "";
  data.resize(size);
  return data;
}

void make_layouts(VulkanDevice& device, uint32_t tensors, Pipeline& pipeline) {
  std::vector<VkDescriptorSetLayoutBinding> bindings(tensors + 1);
  for (uint32_t i = 0; i <= tensors; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType =
        i < tensors ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = tensors + 1;
  set.pBindings = bindings.data();
  const DeviceFunctions& vk = device.functions();
  check(vk.CreateDescriptorSetLayout(device.handle(), &set, nullptr, &pipeline.tensors),
        "vkCreateDescriptorSetLayout");
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &pipeline.tensors;
  check(vk.CreatePipelineLayout(device.handle(), &layout, nullptr, &pipeline.layout),
        "vkCreatePipelineLayout");
}

void compile(VulkanDevice& device, const std::string& name, const KernelInfo& info,
             VkPipelineCache cache, Pipeline& pipeline) {
  const DeviceFunctions& vk = device.functions();
  make_layouts(device, info.tensors(), pipeline);
  const Edition* edition = edition_for(info, device.physical());
  size_t begin = edition == nullptr ? 0 : edition->begin;
  size_t bytes = edition == nullptr ? info.spirv.size() : edition->bytes;
  std::vector<uint32_t> words(bytes / sizeof(uint32_t));  // aligned memory for the SPIR-V words
  std::memcpy(words.data(), info.spirv.data() + begin, bytes);
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = bytes;
  code.pCode = words.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  check(vk.CreateShaderModule(device.handle(), &code, nullptr, &shader),
        ("vkCreateShaderModule of " + name).c_str());
  VkComputePipelineCreateInfo create_info{};
  create_info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  create_info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create_info.stage.module = shader;
  create_info.stage.pName = name.c_str();
  create_info.layout = pipeline.layout;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo lanes{};
  if (edition != nullptr) {
    lanes.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    lanes.requiredSubgroupSize = edition->lanes;
    create_info.stage.pNext = &lanes;
    create_info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  VkResult result =
      vk.CreateComputePipelines(device.handle(), cache, 1, &create_info, nullptr, &pipeline.handle);
  vk.DestroyShaderModule(device.handle(), shader, nullptr);
  check(result, ("vkCreateComputePipelines of " + name).c_str());
}

}  // namespace

Pipelines::Pipelines(VulkanDevice& device, const std::map<std::string, KernelInfo>& kernels,
                     uint64_t library)
    : device_(device) {
  std::string problems;
  for (const auto& [name, info] : kernels) problems += problems_of(name, info, device.physical());
  problems += matrix_problem(kernels, device.physical());
  const VkPhysicalDeviceProperties& properties = device.physical().properties;
  if (!problems.empty()) {
    TVM_FFI_THROW(RuntimeError) << "the library does not run on " << properties.deviceName << ":"
                                << problems;
  }
  uint64_t identity = Hash()
                          .number(library)
                          .bytes(properties.pipelineCacheUUID, VK_UUID_SIZE)
                          .number(properties.deviceID)
                          .value();
  char file[32];
  std::snprintf(file, sizeof file, "%016llx.vkcache", static_cast<unsigned long long>(identity));
  std::string known = read_file(file, properties);
  VkPipelineCache cache = make_cache(device, known);
  try {
    build_all(kernels, cache);
  } catch (...) {
    release();
    device.functions().DestroyPipelineCache(device.handle(), cache, nullptr);
    throw;
  }
  std::string now = content(device, cache);
  if (!now.empty() && now != known) backends::write_cached(file, header(properties, now) + now);
  device.functions().DestroyPipelineCache(device.handle(), cache, nullptr);
}

Pipelines::~Pipelines() {
  try {
    device_.wait();  // kernels of the library may still be running
  } catch (const tvm::ffi::Error&) {
    return;  // the device was lost, and its objects with it
  }
  release();
}

void Pipelines::release() {
  const DeviceFunctions& vk = device_.functions();
  for (auto& [name, pipeline] : built_) {
    vk.DestroyPipeline(device_.handle(), pipeline.handle, nullptr);
    vk.DestroyPipelineLayout(device_.handle(), pipeline.layout, nullptr);
    vk.DestroyDescriptorSetLayout(device_.handle(), pipeline.tensors, nullptr);
  }
}

void Pipelines::build_all(const std::map<std::string, KernelInfo>& kernels, VkPipelineCache cache) {
  struct Job {
    const std::string* name;
    const KernelInfo* info;
    Pipeline* pipeline;
  };
  std::vector<Job> jobs;
  for (const auto& [name, info] : kernels) jobs.push_back({&name, &info, &built_[name]});
  backends::in_parallel(jobs.size(), [&](size_t i) {
    compile(device_, *jobs[i].name, *jobs[i].info, cache, *jobs[i].pipeline);
  });
}

}  // namespace wherry::vulkan
