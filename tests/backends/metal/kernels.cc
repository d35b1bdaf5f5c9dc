#include "kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <regex>
#include <string>

#include "../../targets/metal/emulator.h"

namespace {

namespace fs = std::filesystem;

// Settings of tests/support/metal_plugin.py.
constexpr char kCompiler[] = "WHERRY_FAKE_METAL_COMPILER";  // a command; sources follow
constexpr char kFolder[] = "WHERRY_FAKE_METAL_FOLDER";      // of compiled kernels

// The source as C++, as tests/support/metal.py writes it.
std::string as_cplusplus(const std::string& source, const std::string& name) {
  // of a cast, not of a variable
  static const std::regex cast(R"(\(threadgroup (\w+\*)\))");
  return "#include <kernel.h>\nnamespace kernel_0 {\n"
         "#define threadgroup static __attribute__((section(\"group_0\")))\n#line 1 \"" +
         name + "\"\n" + std::regex_replace(source, cast, "($1)") +
         "\n#undef threadgroup\n}\nMETAL_KERNEL_SELF(0, " + name +
         ", 0)\nextern \"C\" const emulator::Kernel* fake_kernel() { return &kernel_0_self; }\n";
}

std::string name_in(const std::string& source) {
  static const std::regex declared(R"(kernel void (\w+)\()");
  std::smatch match;
  return std::regex_search(source, match, declared) ? match[1].str() : "";
}

// Runs a command; returns its output, and whether it ended with 0.
std::pair<bool, std::string> run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {false, "cannot run " + command};
  std::string said;
  char part[4096];
  for (size_t n = 0; (n = fread(part, 1, sizeof part, pipe)) > 0;) said.append(part, n);
  return {pclose(pipe) == 0, said};
}

// Compiles to a file of the folder, unless an earlier process has.
std::string library_of(const std::string& text, std::string& error) {
  const char* compiler = getenv(kCompiler);
  const char* folder = getenv(kFolder);
  if (compiler == nullptr || folder == nullptr) {
    error = std::string(kCompiler) + " and " + kFolder + " are not set";
    return "";
  }
  char name[40];
  const size_t hash = std::hash<std::string>()(text + compiler);
  std::snprintf(name, sizeof name, "%016zx.so", hash);
  const fs::path path = fs::path(folder) / name;
  if (fs::exists(path)) return path;
  static std::mutex mutex;
  static int count = 0;
  std::unique_lock<std::mutex> lock(mutex);
  const std::string own = path.string() + "." + std::to_string(getpid()) + std::to_string(++count);
  lock.unlock();
  std::ofstream(own + ".cc") << text;
  const auto [done, said] = run(std::string(compiler) + " " + own + ".cc -o " + own);
  fs::remove(own + ".cc");
  if (done) {
    fs::rename(own, path);
  } else {
    error = said.empty() ? "the compiler failed" : said;
  }
  return done ? path.string() : "";
}

const emulator::Kernel& kernel_of(const FakeKernel* kernel) {
  return *reinterpret_cast<const emulator::Kernel*>(kernel);
}

}  // namespace

const FakeKernel* fake_compile(const char* source, char** error) {
  const std::string name = name_in(source);
  std::string problem = name.empty() ? "the source has no kernel" : "";
  void* library = nullptr;
  if (problem.empty()) {
    const std::string path = library_of(as_cplusplus(source, name), problem);
    if (!path.empty()) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!path.empty() && library == nullptr) problem = dlerror();
  }
  if (library == nullptr) {
    *error = strdup(problem.c_str());
    return nullptr;
  }
  auto get = reinterpret_cast<const FakeKernel* (*)()>(dlsym(library, "fake_kernel"));
  return get();
}

const char* fake_kernel_name(const FakeKernel* kernel) { return kernel_of(kernel).name; }

int fake_kernel_buffers(const FakeKernel* kernel) { return kernel_of(kernel).buffers; }

int fake_kernel_number_bytes(const FakeKernel* kernel) { return 8 * kernel_of(kernel).scalars; }

char* fake_run(const FakeKernel* kernel, void* const* buffers, const void* numbers,
               const unsigned* extents) {
  return metal_run(&kernel_of(kernel), buffers, numbers, extents);
}
