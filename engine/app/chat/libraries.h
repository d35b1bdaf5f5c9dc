// The libraries that a load opens besides the model's: TVM's run time, and what drives a device.
#ifndef WHERRY_ENGINE_APP_CHAT_LIBRARIES_H_
#define WHERRY_ENGINE_APP_CHAT_LIBRARIES_H_

#include <string>

namespace wherry::app {

// For all that is opened after it. path: "" is none where the program has it, else
// libtvm_runtime.so, as the linker finds it. Throws Error.
void open_runtime(const std::string& path);

// What drives devices of a kind ("opencl"): a plugin of ours, or TVM's own library for CUDA.
// Nothing is opened for the CPU, or for a kind that the process has. path: "" is
// libwherry_<kind>.so, for cuda libtvm_runtime_cuda.so, as the linker finds it. Throws Error.
void open_driver(const std::string& kind, const std::string& path);

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_LIBRARIES_H_
