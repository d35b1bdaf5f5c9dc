// Opens a device plugin; this part is common to all plugins.
#ifndef WHERRY_ENGINE_BACKENDS_PLUGIN_H_
#define WHERRY_ENGINE_BACKENDS_PLUGIN_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/string.h>

#include <string>

#include "backends/devices.h"

namespace wherry::backends {

using LoadModule = tvm::ffi::Module (*)(const tvm::ffi::Bytes& bytes);

// Registers device_api.<kind>, ffi.Module.load_from_bytes.<kind> and wherry.<kind>.start, once. The
// function wherry.<kind>.start takes a contiguous tensor: see `Device::start`. Returns null, or an
// error message that is valid until the next call.
const char* open_plugin(const std::string& kind, Devices& devices, LoadModule load,
                        const char* tvm_version, const char* cache_folder);

// Returns `Devices::to_json` as a C string that is valid until the next call.
const char* list_devices(Devices& devices);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_PLUGIN_H_
