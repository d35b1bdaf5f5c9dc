// What a program opens before it loads a model: TVM's run time, and what drives a device.
#ifndef WHERRY_ENGINE_TOOLS_RUNTIME_H_
#define WHERRY_ENGINE_TOOLS_RUNTIME_H_

#include <string>

namespace wherry {

// path: of TVM's run time; "": none if it is linked into the program, else libtvm_runtime.so as the
// linker finds it. Throws std::runtime_error.
void open_runtime(const std::string& path);

// device: "cpu" or "<kind>:<index>"; path: of what drives it, "": libwherry_<kind>.so, for cuda
// libtvm_runtime_cuda.so, as the linker finds it. Throws std::runtime_error.
void open_driver(const std::string& device, const std::string& path);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TOOLS_RUNTIME_H_
