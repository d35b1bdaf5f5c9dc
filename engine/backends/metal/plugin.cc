#include "backends/metal/plugin.h"

#include "backends/metal/device.h"
#include "backends/metal/module.h"
#include "backends/plugin.h"

const char* wherry_metal_open(const char* tvm_version, const char* cache_folder) {
  return wherry::backends::open_plugin("metal", wherry::metal::devices(),
                                       wherry::metal::load_module, tvm_version, cache_folder);
}

const char* wherry_metal_devices() {
  return wherry::backends::list_devices(wherry::metal::devices());
}
