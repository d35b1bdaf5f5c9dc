// The process's loaded kernel libraries of one device kind. Modules with equal bytes share one
// library; the last of them frees it.
#ifndef WHERRY_ENGINE_BACKENDS_LIBRARY_H_
#define WHERRY_ENGINE_BACKENDS_LIBRARY_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "support/hash.h"

namespace wherry::backends {

// Keeps the function objects of a library's kernels. They are small and stay until the process
// ends, because host code that is loaded twice keeps the function objects of the first module,
// which may be freed. The last module with these bytes frees the kernels, and the next one loads
// them again.
//
// Library: has a constructor from bytes, `bytes()`, `has(name)` and `launch(name, args)`.
template <typename Library>
class LibraryFunctions {
 public:
  // Returns the functions for a library's bytes, and the library, which the module must keep alive.
  // Throws what the library's constructor throws.
  static std::pair<LibraryFunctions*, std::shared_ptr<Library>> open(const std::string& bytes) {
    static std::mutex mutex;
    static auto* all = new std::map<std::pair<uint64_t, size_t>, LibraryFunctions>();
    std::lock_guard<std::mutex> lock(mutex);
    LibraryFunctions& own = (*all)[{Hash().text(bytes).value(), bytes.size()}];
    std::shared_ptr<Library> library = own.library();
    if (library == nullptr) {
      library = std::make_shared<Library>(bytes);
      std::lock_guard<std::mutex> change(own.mutex_);
      own.library_ = library;
    } else if (library->bytes() != bytes) {
      TVM_FFI_THROW(RuntimeError) << "two libraries have one hash: load them in two processes";
    }
    return {&own, std::move(library)};
  }

  // Returns the kernel's function; none if the library has no kernel of that name.
  tvm::ffi::Optional<tvm::ffi::Function> function(const Library& library, const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto match = functions_.find(name);
    if (match != functions_.end()) return match->second;
    if (!library.has(name)) return std::nullopt;
    auto launch = [this, name](tvm::ffi::PackedArgs args, tvm::ffi::Any*) {
      std::shared_ptr<Library> current = this->library();
      if (current == nullptr) TVM_FFI_THROW(RuntimeError) << name << ": its library was unloaded";
      current->launch(name, args);
    };
    return functions_.emplace(name, tvm::ffi::Function::FromPacked(launch)).first->second;
  }

 private:
  std::shared_ptr<Library> library() {
    std::lock_guard<std::mutex> lock(mutex_);
    return library_.lock();
  }

  std::mutex mutex_;
  std::weak_ptr<Library> library_;
  std::map<std::string, tvm::ffi::Function> functions_;
};

// A library's kernels as a module of TVM's runtime.
//
// Library: as for LibraryFunctions; also has `kKind`, the module's kind.
template <typename Library>
class KernelModule : public tvm::ffi::ModuleObj {
 public:
  // Throws what the library's constructor throws.
  explicit KernelModule(const std::string& bytes) {
    std::tie(functions_, library_) = LibraryFunctions<Library>::open(bytes);
  }

  const char* kind() const final { return Library::kKind; }
  int GetPropertyMask() const final {
    return tvm::ffi::Module::kBinarySerializable | tvm::ffi::Module::kRunnable;
  }
  tvm::ffi::Bytes SaveToBytes() const final { return tvm::ffi::Bytes(library_->bytes()); }
  tvm::ffi::Optional<tvm::ffi::Function> GetFunction(const tvm::ffi::String& name) final {
    return functions_->function(*library_, name);
  }

 protected:
  const Library& library() const { return *library_; }

 private:
  LibraryFunctions<Library>* functions_ = nullptr;
  std::shared_ptr<Library> library_;
};

// Returns a module for the bytes that the compiler wrote. Throws what the library's constructor
// throws.
template <typename Module>
tvm::ffi::Module module_of(const tvm::ffi::Bytes& bytes) {
  return tvm::ffi::Module(tvm::ffi::make_object<Module>(std::string(bytes.data(), bytes.size())));
}

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_LIBRARY_H_
