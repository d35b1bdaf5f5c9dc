// The part of OpenCL 1.2 that the plugin calls, declared here and looked up at run time: building
// needs no OpenCL headers, and a machine without OpenCL can still load everything else.
//
// Names, types and values are those of the Khronos specification, OpenCL 1.2, sections 4 to 5.
#ifndef WHERRY_ENGINE_BACKENDS_OPENCL_API_H_
#define WHERRY_ENGINE_BACKENDS_OPENCL_API_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace wherry::opencl {

using Int = int32_t;
using Uint = uint32_t;
using Bits = uint64_t;      // cl_bitfield
using Platform = void*;     // cl_platform_id
using DeviceId = void*;     // cl_device_id
using Context = void*;      // cl_context
using Queue = void*;        // cl_command_queue
using Memory = void*;       // cl_mem
using Program = void*;      // cl_program
using Kernel = void*;       // cl_kernel
using Event = void*;        // cl_event
using Property = intptr_t;  // cl_context_properties

constexpr Int kSuccess = 0;
constexpr Int kDeviceNotFound = -1;
constexpr Int kPlatformNotFound = -1001;  // defined by the extension cl_khr_icd
constexpr Uint kFalse = 0, kTrue = 1;
constexpr Bits kTypeCpu = 1 << 1, kTypeGpu = 1 << 2, kTypeAccelerator = 1 << 3;
constexpr Bits kReadWrite = 1 << 0;

constexpr Uint kDeviceType = 0x1000, kMaxComputeUnits = 0x1002, kMaxWorkGroupSize = 0x1004,
               kMaxClockFrequency = 0x100C, kMaxMemAllocSize = 0x1010, kGlobalMemSize = 0x101F,
               kLocalMemSize = 0x1023, kDeviceName = 0x102B, kDeviceVendor = 0x102C,
               kDriverVersion = 0x102D, kDeviceVersion = 0x102F, kDeviceExtensions = 0x1030,
               kHostUnifiedMemory = 0x1035;
// The extension cl_amd_device_attribute_query defines this constant.
constexpr Uint kGlobalFreeMemoryAmd = 0x4039;
constexpr Uint kProgramBinarySizes = 0x1165, kProgramBinaries = 0x1166, kProgramBuildLog = 0x1183;

// The OpenCL functions as pointers, all set once `load` has returned.
struct Api {
  Int (*GetPlatformIDs)(Uint, Platform*, Uint*);
  Int (*GetDeviceIDs)(Platform, Bits, Uint, DeviceId*, Uint*);
  Int (*GetDeviceInfo)(DeviceId, Uint, size_t, void*, size_t*);
  Context (*CreateContext)(const Property*, Uint, const DeviceId*, void (*)(), void*, Int*);
  Queue (*CreateCommandQueue)(Context, DeviceId, Bits, Int*);
  Memory (*CreateBuffer)(Context, Bits, size_t, void*, Int*);
  Int (*ReleaseMemObject)(Memory);
  Int (*Flush)(Queue);
  Int (*Finish)(Queue);
  Int (*EnqueueReadBuffer)(Queue, Memory, Uint, size_t, size_t, void*, Uint, const Event*, Event*);
  Int (*EnqueueWriteBuffer)(Queue, Memory, Uint, size_t, size_t, const void*, Uint, const Event*,
                            Event*);
  Int (*EnqueueCopyBuffer)(Queue, Memory, Memory, size_t, size_t, size_t, Uint, const Event*,
                           Event*);
  Program (*CreateProgramWithSource)(Context, Uint, const char**, const size_t*, Int*);
  Program (*CreateProgramWithBinary)(Context, Uint, const DeviceId*, const size_t*,
                                     const unsigned char**, Int*, Int*);
  Int (*BuildProgram)(Program, Uint, const DeviceId*, const char*, void (*)(), void*);
  Int (*GetProgramInfo)(Program, Uint, size_t, void*, size_t*);
  Int (*GetProgramBuildInfo)(Program, DeviceId, Uint, size_t, void*, size_t*);
  Int (*ReleaseProgram)(Program);
  Kernel (*CreateKernel)(Program, const char*, Int*);
  Int (*ReleaseKernel)(Kernel);
  Int (*SetKernelArg)(Kernel, Uint, size_t, const void*);
  Int (*WaitForEvents)(Uint, const Event*);
  Int (*ReleaseEvent)(Event);
  Int (*EnqueueNDRangeKernel)(Queue, Kernel, Uint, const size_t*, const size_t*, const size_t*,
                              Uint, const Event*, Event*);

  // Opens the system's OpenCL at the first call. If there is no OpenCL, each call throws a
  // RuntimeError of tvm-ffi that names the libraries that it tried.
  static const Api& get();
};

// Returns a status as text, e.g. "CL_OUT_OF_RESOURCES (-5)".
std::string name_of(Int status);

// Throws a RuntimeError, or a MemoryError, of tvm-ffi unless status is CL_SUCCESS. call: the failed
// function's name.
void check(Int status, const char* call);

}  // namespace wherry::opencl

#endif  // WHERRY_ENGINE_BACKENDS_OPENCL_API_H_
