#include "support/tvm_calls.h"

#include <tvm/ffi/function.h>

#if defined(_WIN32)
#include <windows.h>
#endif

namespace wherry {

#if defined(_WIN32)

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
  constexpr size_t kPrefix = 2;  // "__", which the exported name lacks
  HMODULE runtime = GetModuleHandleW(L"tvm_runtime.dll");
  if (runtime == nullptr) return nullptr;
  return reinterpret_cast<void*>(GetProcAddress(runtime, name.c_str() + kPrefix));
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
  void* found = nullptr;
  ffi::Module::VisitContextSymbols([&](const ffi::String& known, void* symbol) {
    // Several modules may provide the symbol; the last one wins.
    if (known == name) found = symbol;
  });
  return found;
}

ffi::Any parse_json(const std::string& text, std::string& problem) {
  ffi::String found;
  ffi::Any value = ffi::json::Parse(text, &found);
  problem = found;
  return value;
}

std::string json_text(const ffi::Any& value) { return ffi::json::Stringify(value); }

#endif

}  // namespace wherry
