#include "matcher/llguidance.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "support/error.h"

namespace wherry {
namespace {

constexpr const char* kVersion = "llguidance@1.";  // required prefix of version()

#if defined(_WIN32)
void* open_library(const std::string& path) {
  HMODULE library = LoadLibraryA(path.c_str());
  if (library == nullptr) {
    throw Error(WHERRY_NOT_FOUND, concat("cannot open ", path, ": Windows error ", GetLastError()));
  }
  return reinterpret_cast<void*>(library);
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
#else
void* open_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(WHERRY_NOT_FOUND, concat("cannot open ", path, ": ", dlerror()));
  }
  return library;
}

void* find_symbol(void* library, const char* name) { return dlsym(library, name); }
#endif

template <typename Function>
void find(void* library, const std::string& path, const char* name, Function*& out) {
  void* symbol = find_symbol(library, name);
  if (symbol == nullptr) {
    throw Error(WHERRY_INCOMPATIBLE,
                concat(path, " has no function ", name,
                       "; it is not the llguidance that this core was written for (1.9)"));
  }
  out = reinterpret_cast<Function*>(symbol);
}

}  // namespace

Llguidance open_llguidance(const std::string& path) {
  void* library = open_library(path);
  Llguidance api{};
  find(library, path, "llg_get_version", api.version);
  const std::string version = api.version();
  if (version.rfind(kVersion, 0) != 0) {
    throw Error(WHERRY_INCOMPATIBLE, concat(path, " is ", version, "; this core takes 1.x"));
  }
  find(library, path, "llg_new_tokenizer_v2", api.new_tokenizer);
  find(library, path, "llg_free_tokenizer", api.free_tokenizer);
  find(library, path, "llg_constraint_init_set_defaults", api.set_defaults);
  find(library, path, "llg_new_matcher", api.new_matcher);
  find(library, path, "llg_clone_matcher", api.clone_matcher);
  find(library, path, "llg_free_matcher", api.free_matcher);
  find(library, path, "llg_matcher_get_error", api.get_error);
  find(library, path, "llg_matcher_get_mask_byte_size", api.mask_bytes);
  find(library, path, "llg_matcher_compute_mask_into", api.compute_mask);
  find(library, path, "llg_matcher_consume_token", api.consume_token);
  find(library, path, "llg_matcher_rollback", api.rollback);
  find(library, path, "llg_matcher_is_accepting", api.is_accepting);
  find(library, path, "llg_matcher_is_stopped", api.is_stopped);
  return api;
}

}  // namespace wherry
