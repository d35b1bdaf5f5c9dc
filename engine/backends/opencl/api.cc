#include "backends/opencl/api.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

#include <map>

#include "backends/system_library.h"

namespace wherry::opencl {

namespace {

#if defined(__APPLE__)
constexpr std::initializer_list<const char*> kLibraries = {
    "/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#elif defined(__ANDROID__)
// By name a driver is found only if the app's manifest names it in <uses-native-library>; older
// systems open a path. Pixels and some phones with Mali have OpenCL under other names.
constexpr std::initializer_list<const char*> kLibraries = {"libOpenCL.so",
                                                           "libOpenCL-pixel.so",
                                                           "libOpenCL-car.so",
                                                           "libGLES_mali.so",
                                                           "/vendor/lib64/libOpenCL.so",
                                                           "/system/vendor/lib64/libOpenCL.so",
                                                           "/vendor/lib64/egl/libGLES_mali.so",
                                                           "/system/lib64/libOpenCL.so"};
constexpr char kFix[] =
    "The phone has no driver for apps, or the app's manifest lacks <uses-native-library "
    "android:name=\"libOpenCL.so\" android:required=\"false\"/>";
#else
constexpr std::initializer_list<const char*> kLibraries = {"libOpenCL.so.1", "libOpenCL.so"};
#endif
#ifndef __ANDROID__
constexpr char kFix[] =
    "On Debian: apt-get install ocl-icd-libopencl1 and the driver of the device "
    "(pocl-opencl-icd runs on CPUs)";
#endif

void* open_library() { return backends::open_system_library(kLibraries, "OpenCL", kFix); }

// Looks a function up. Pixels' libraries export no functions of OpenCL, but two that enable it and
// return its functions' addresses.
void* address_of(void* library, const char* name) {
  using Load = void* (*)(const char* name);
  auto load = reinterpret_cast<Load>(dlsym(library, "loadOpenCLPointer"));
  return load == nullptr ? dlsym(library, name) : load(name);
}

template <typename F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(address_of(library, name));
  if (function == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "the system's OpenCL has no " << name
                                << "; version 1.2 is needed";
  }
}

Api load() {
  void* library = open_library();
  if (auto enable = reinterpret_cast<void (*)()>(dlsym(library, "enableOpenCL"))) enable();
  Api api;
#define WHERRY_FIND(name) find(library, "cl" #name, api.name)
  WHERRY_FIND(GetPlatformIDs);
  WHERRY_FIND(GetDeviceIDs);
  WHERRY_FIND(GetDeviceInfo);
  WHERRY_FIND(CreateContext);
  WHERRY_FIND(CreateCommandQueue);
  WHERRY_FIND(CreateBuffer);
  WHERRY_FIND(ReleaseMemObject);
  WHERRY_FIND(Flush);
  WHERRY_FIND(Finish);
  WHERRY_FIND(EnqueueReadBuffer);
  WHERRY_FIND(EnqueueWriteBuffer);
  WHERRY_FIND(EnqueueCopyBuffer);
  WHERRY_FIND(CreateProgramWithSource);
  WHERRY_FIND(CreateProgramWithBinary);
  WHERRY_FIND(BuildProgram);
  WHERRY_FIND(GetProgramInfo);
  WHERRY_FIND(GetProgramBuildInfo);
  WHERRY_FIND(ReleaseProgram);
  WHERRY_FIND(CreateKernel);
  WHERRY_FIND(ReleaseKernel);
  WHERRY_FIND(SetKernelArg);
  WHERRY_FIND(WaitForEvents);
  WHERRY_FIND(ReleaseEvent);
  WHERRY_FIND(EnqueueNDRangeKernel);
#undef WHERRY_FIND
  return api;
}

}  // namespace

const Api& Api::get() {
  static const Api api = load();
  return api;
}

std::string name_of(Int status) {
  static const std::map<Int, const char*> kNames = {
      {-1, "CL_DEVICE_NOT_FOUND"},
      {-2, "CL_DEVICE_NOT_AVAILABLE"},
      {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {-5, "CL_OUT_OF_RESOURCES"},
      {-6, "CL_OUT_OF_HOST_MEMORY"},
      {-11, "CL_BUILD_PROGRAM_FAILURE"},
      {-36, "CL_INVALID_COMMAND_QUEUE"},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-42, "CL_INVALID_BINARY"},
      {-46, "CL_INVALID_KERNEL_NAME"},
      {-51, "CL_INVALID_ARG_SIZE"},
      {-52, "CL_INVALID_KERNEL_ARGS"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE"},
      {-61, "CL_INVALID_BUFFER_SIZE"},
      {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
      {-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
  auto match = kNames.find(status);
  std::string number = "(" + std::to_string(status) + ")";
  return match == kNames.end() ? "status " + number : match->second + (" " + number);
}

void check(Int status, const char* call) {
  if (status == kSuccess) return;
  if (status == -4 || status == -5 || status == -6 || status == -61) {
    TVM_FFI_THROW(MemoryError) << "OpenCL: " << call << " failed: " << name_of(status);
  }
  TVM_FFI_THROW(RuntimeError) << "OpenCL: " << call << " failed: " << name_of(status);
}

}  // namespace wherry::opencl
