// Functions of TVM's that are C++. Where TVM's compiler is another one than the core's
// (cmake/tvm_by_c.cmake), the same is called by what TVM registers, or exports as C.
#ifndef WHERRY_ENGINE_SUPPORT_TVM_CALLS_H_
#define WHERRY_ENGINE_SUPPORT_TVM_CALLS_H_

#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/module.h>

#include <string>

namespace wherry {

namespace ffi = tvm::ffi;

// Loads a library's file; throws ffi::Error.
ffi::Module load_module(const std::string& file);

// Returns the function of this name; null if the module has none.
ffi::Optional<ffi::Function> function_of(const ffi::Module& module, const std::string& name);

// Returns the function that TVM gives to compiled code under `name` ("__TVMBackend..."), before it
// is replaced; null if there is none.
void* context_symbol(const std::string& name);

// Parses JSON. Returns null and sets `problem` if the text is none.
ffi::Any parse_json(const std::string& text, std::string& problem);

std::string json_text(const ffi::Any& value);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_TVM_CALLS_H_
