// libwherry_metal: Metal devices for TVM's runtime. The engine loads it at the first use of a
// device.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_PLUGIN_H_
#define WHERRY_ENGINE_BACKENDS_METAL_PLUGIN_H_

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers Metal devices and the loader of compiled libraries with TVM; the process must have
 * loaded libtvm_ffi and libtvm_runtime. A second call does nothing.
 *
 * tvm_version: version of the apache-tvm package whose runtime is loaded. It must be the version
 *   that this plugin was built with: their interface is a C++ class, which has no stable layout.
 *
 * cache_folder: folder for the binaries of compiled kernels; null or "": no cache.
 *
 * Returns null, or an error message that is valid until the next call.
 */
__attribute__((visibility("default"))) const char* wherry_metal_open(const char* tvm_version,
                                                                     const char* cache_folder);

/*
 * Returns the devices as JSON: {"devices": [{"name", "driver", "discrete", "software", "memory",
 * "available_memory", "largest_buffer", "threads_per_block", "shared_memory"}], "problems"}; sizes
 * in bytes, available_memory -1 if the driver does not report it. Valid until the next call.
 */
__attribute__((visibility("default"))) const char* wherry_metal_devices();

#ifdef __cplusplus
}
#endif

#endif  // WHERRY_ENGINE_BACKENDS_METAL_PLUGIN_H_
