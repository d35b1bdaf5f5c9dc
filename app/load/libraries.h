// Opens the libraries that a model needs: TVM's runtime and the device's driver.
#ifndef WHERRY_APP_CHAT_LIBRARIES_H_
#define WHERRY_APP_CHAT_LIBRARIES_H_

#include <string>

namespace wherry::app {

// Opens TVM's runtime, which all later libraries need. path: "" opens nothing if the program
// contains the runtime, else libtvm_runtime.so from the linker's search path. Throws Error.
void open_runtime(const std::string& path);

// Opens the driver for a kind of device ("opencl"): one of our plugins, or TVM's own library for
// CUDA. Does nothing for the CPU or if the driver is loaded. path: "" takes the plugin that is
// linked in, else opens libwherry_<kind>.so (for cuda libtvm_runtime_cuda.so) from the linker's
// search path. cache_folder: for the binaries of compiled kernels; "" keeps none. Throws Error.
void open_driver(const std::string& kind, const std::string& path, const std::string& cache_folder);

// Returns the table of the models that are linked into the program, as JSON; "" if there is none.
std::string linked_table();

// Returns the devices of a plugin that is linked into the program as JSON, as
// wherry_<kind>_devices does; "" if there is no such plugin. The plugin must be open.
std::string linked_devices(const std::string& kind);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_LIBRARIES_H_
