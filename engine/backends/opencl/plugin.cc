#include "backends/opencl/plugin.h"

#include "backends/opencl/device.h"
#include "backends/opencl/module.h"
#include "backends/plugin.h"

const char* wherry_opencl_open(const char* tvm_version, const char* cache_folder) {
  return wherry::backends::open_plugin("opencl", wherry::opencl::devices(),
                                       wherry::opencl::load_module, tvm_version, cache_folder);
}

const char* wherry_opencl_devices() {
  return wherry::backends::list_devices(wherry::opencl::devices());
}
