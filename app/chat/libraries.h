// Opens the libraries that a model needs: TVM's runtime and the device's driver.
#ifndef WHERRY_APP_CHAT_LIBRARIES_H_
#define WHERRY_APP_CHAT_LIBRARIES_H_

#include <string>

namespace wherry::app {

// Opens TVM's runtime, which all later libraries need. path: "" opens nothing if the program
// contains the runtime, else libtvm_runtime.so from the linker's search path. Throws Error.
void open_runtime(const std::string& path);

// Opens the driver for a kind of device ("opencl"): one of our plugins, or TVM's own library for
// CUDA. Does nothing for the CPU or if the driver is loaded. path: "" opens libwherry_<kind>.so
// (for cuda libtvm_runtime_cuda.so) from the linker's search path. Throws Error.
void open_driver(const std::string& kind, const std::string& path);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_LIBRARIES_H_
