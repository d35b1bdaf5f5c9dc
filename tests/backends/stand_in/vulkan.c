/*
 * Stands before the system's libvulkan (SYSTEM is its path): passes everything on, counts some
 * calls, and loses the device when it is told to, as a driver does whose GPU hung.
 */
#define _GNU_SOURCE
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <vulkan/vulkan_core.h>

static atomic_int lost, submits, pipelines;

void stand_in_lose(void) { lost = 1; }
int stand_in_starts(void) { return submits; }
int stand_in_kernels(void) { return pipelines; }

static PFN_vkGetDeviceProcAddr get_device;
static PFN_vkQueueSubmit queue_submit;
static PFN_vkWaitForFences wait_for_fences;
static PFN_vkCreateComputePipelines create_pipelines;
static PFN_vkDestroyPipeline destroy_pipeline;

static VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  ++submits;
  return lost ? VK_ERROR_DEVICE_LOST : queue_submit(queue, count, infos, fence);
}

static VkResult wait(VkDevice device, uint32_t count, const VkFence* fences, VkBool32 all,
                     uint64_t timeout) {
  VkResult result = wait_for_fences(device, count, fences, all, timeout);
  return lost ? VK_ERROR_DEVICE_LOST : result;
}

static VkResult create(VkDevice device, VkPipelineCache cache, uint32_t count,
                       const VkComputePipelineCreateInfo* infos,
                       const VkAllocationCallbacks* allocator, VkPipeline* made) {
  pipelines += (int)count;
  return create_pipelines(device, cache, count, infos, allocator, made);
}

static void destroy(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* allocator) {
  --pipelines;
  destroy_pipeline(device, pipeline, allocator);
}

#define STAND_IN(function, own, real)        \
  if (strcmp(name, function) == 0) {         \
    real = (__typeof__(real))found;          \
    return (PFN_vkVoidFunction)own;          \
  }

static PFN_vkVoidFunction of_device(VkDevice device, const char* name) {
  PFN_vkVoidFunction found = get_device(device, name);
  STAND_IN("vkQueueSubmit", submit, queue_submit)
  STAND_IN("vkWaitForFences", wait, wait_for_fences)
  STAND_IN("vkCreateComputePipelines", create, create_pipelines)
  STAND_IN("vkDestroyPipeline", destroy, destroy_pipeline)
  return found;
}

__attribute__((visibility("default"))) PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance,
                                                                                const char* name) {
  static PFN_vkGetInstanceProcAddr get;
  if (!get) {
    void* library = dlopen(SYSTEM, RTLD_NOW | RTLD_LOCAL);
    get = (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr");
  }
  PFN_vkVoidFunction found = get(instance, name);
  STAND_IN("vkGetDeviceProcAddr", of_device, get_device)
  return found;
}
