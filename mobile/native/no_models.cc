// The empty tables of linked-in models and plugins, which replace the models.cc that `wherry
// package` writes; see runtime.cc.
extern "C" {
struct WherryDriver {
  const char* kind;
  const char* (*open)(const char* tvm_version, const char* cache_folder);
  const char* (*devices)();
};
extern const void* const wherry_linked_models[];
extern const char wherry_linked_codes[];
extern const WherryDriver wherry_linked_drivers[];
const void* const wherry_linked_models[] = {nullptr};
const char wherry_linked_codes[] = "{}";
const WherryDriver wherry_linked_drivers[] = {{nullptr, nullptr, nullptr}};
}
