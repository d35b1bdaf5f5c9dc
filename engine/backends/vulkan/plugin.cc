#include "backends/vulkan/plugin.h"

#include "backends/plugin.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/module.h"

const char* wherry_vulkan_open(const char* tvm_version, const char* cache_folder) {
  return wherry::backends::open_plugin("vulkan", wherry::vulkan::devices(),
                                       wherry::vulkan::load_module, tvm_version, cache_folder);
}

const char* wherry_vulkan_devices() {
  return wherry::backends::list_devices(wherry::vulkan::devices());
}
