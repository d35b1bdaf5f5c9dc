// Opens the libraries that a program needs before it loads a model: TVM's runtime and device
// drivers.
#ifndef WHERRY_ENGINE_PROGRAMS_RUNTIME_H_
#define WHERRY_ENGINE_PROGRAMS_RUNTIME_H_

#include <string>

namespace wherry {

// Opens TVM's runtime. path: its library; "" means libtvm_runtime.so as the linker finds it, or
// nothing if the runtime is linked into the program. Throws std::runtime_error.
void open_runtime(const std::string& path);

// Opens the plugin of a device. device: "cpu" or "<kind>:<index>". path: the plugin; "" means
// libwherry_<kind>.so, or for cuda libtvm_runtime_cuda.so, as the linker finds it. Throws
// std::runtime_error.
void open_driver(const std::string& device, const std::string& path);

}  // namespace wherry

#endif  // WHERRY_ENGINE_PROGRAMS_RUNTIME_H_
