// libwherry_vulkan: Vulkan devices for TVM's runtime. The engine loads it at the first use of a
// device.
#ifndef WHERRY_ENGINE_BACKENDS_VULKAN_PLUGIN_H_
#define WHERRY_ENGINE_BACKENDS_VULKAN_PLUGIN_H_

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers the devices and the loader of compiled libraries; needs libtvm_ffi and libtvm_runtime
 * in the process. A second call does nothing.
 * tvm_version: version of the apache-tvm package whose run time is loaded. It has to be the one
 *   that this plugin was built with: their interface is a C++ class, which has no stable layout.
 * cache_folder: for what drivers compiled; null or "": none are kept.
 * Returns null, or what is wrong; the text stays valid until the next call.
 */
__attribute__((visibility("default"))) const char* wherry_vulkan_open(const char* tvm_version,
                                                                      const char* cache_folder);

/*
 * The devices as JSON: {"devices": [{"name", "driver", "discrete", "software", "memory",
 * "available_memory", "largest_buffer", "threads_per_block", "shared_memory"}], "problems"}; sizes
 * in bytes, available_memory -1 where the driver does not tell. Valid until the next call.
 */
__attribute__((visibility("default"))) const char* wherry_vulkan_devices();

#ifdef __cplusplus
}
#endif

#endif  // WHERRY_ENGINE_BACKENDS_VULKAN_PLUGIN_H_
