#include "support/tvm_calls.h"

#include <tvm/ffi/function.h>

#if !defined(WHERRY_TVM_BY_C)
#elif defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace wherry {

#if defined(WHERRY_TVM_BY_C)

namespace {

ffi::Function registered(const char* name) { return ffi::Function::GetGlobalRequired(name); }

}  // namespace

ffi::Module load_module(const std::string& file) {
  return registered("ffi.ModuleLoadFromFile")(file).cast<ffi::Module>();
}

ffi::Optional<ffi::Function> function_of(const ffi::Module& module, const std::string& name) {
  constexpr bool kImports = false;
  return registered("ffi.ModuleGetFunction")(module, name, kImports)
      .cast<ffi::Optional<ffi::Function>>();
}

void* context_symbol(const std::string& name) {
  const char* exported = name.c_str() + 2;  // without "__"
#if defined(_WIN32)
  HMODULE runtime = GetModuleHandleW(L"tvm_runtime.dll");
  return runtime ? reinterpret_cast<void*>(GetProcAddress(runtime, exported)) : nullptr;
#else
  return dlsym(RTLD_DEFAULT, exported);
#endif
}

ffi::Any parse_json(const std::string& text, std::string& problem) try {
  return registered("ffi.json.Parse")(text);
} catch (const ffi::Error& error) {
  problem = error.message();
  return nullptr;
}

std::string json_text(const ffi::Any& value) {
  return registered("ffi.json.Stringify")(value, nullptr).cast<ffi::String>();
}

#else

ffi::Module load_module(const std::string& file) { return ffi::Module::LoadFromFile(file); }

ffi::Optional<ffi::Function> function_of(const ffi::Module& module, const std::string& name) {
  return module->GetFunction(name);
}

void* context_symbol(const std::string& name) {
  void* result = nullptr;
  ffi::Module::VisitContextSymbols([&](const ffi::String& known, void* symbol) {
    // Several modules may provide the symbol; the last one wins.
    if (known == name) result = symbol;
  });
  return result;
}

ffi::Any parse_json(const std::string& text, std::string& problem) {
  ffi::String message;
  ffi::Any value = ffi::json::Parse(text, &message);
  problem = message;
  return value;
}

std::string json_text(const ffi::Any& value) { return ffi::json::Stringify(value); }

#endif

}  // namespace wherry
