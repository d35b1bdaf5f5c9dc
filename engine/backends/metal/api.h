// The part of Metal that the plugin calls: its methods with their prototypes, and its numbers.
//
// Names and values are those of Apple's documentation of Metal, iOS 16 and macOS 13; a method of a
// later system is sent only to objects that respond to it.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_API_H_
#define WHERRY_ENGINE_BACKENDS_METAL_API_H_

#include <cstdint>

#include "backends/metal/objc.h"

extern "C" objc_object* MTLCreateSystemDefaultDevice(void);

namespace wherry::metal {

struct Size {  // MTLSize
  UInt width, height, depth;
};

constexpr UInt kStorageModeShared = 0;        // MTLResourceStorageModeShared
constexpr Int kFamilyApple7 = 1007;           // MTLGPUFamilyApple7: A14 and M1
constexpr UInt kStatusCompleted = 4;          // MTLCommandBufferStatusCompleted
constexpr UInt kStatusError = 5;              // MTLCommandBufferStatusError
constexpr Int kErrorNotPermitted = 7;         // MTLCommandBufferErrorNotPermitted
constexpr Int kMathModeSafe = 0;              // MTLMathModeSafe
constexpr UInt kOptionNone = 0;               // MTLPipelineOptionNone
constexpr UInt kOptionFailOnArchiveMiss = 4;  // MTLPipelineOptionFailOnBinaryArchiveMiss
constexpr UInt kMostBytesOfSetBytes = 4096;   // limit of setBytes:length:atIndex:
constexpr UInt kBlitAlignment = 4;            // of offsets and sizes of copies on macOS

// Methods, by the class or protocol that has them.
struct Api {
  // MTLDevice
  Message<Id> name{"name"};
  Message<uint64_t> recommended_max_working_set_size{"recommendedMaxWorkingSetSize"};
  Message<UInt> current_allocated_size{"currentAllocatedSize"};
  Message<UInt> max_buffer_length{"maxBufferLength"};
  Message<UInt> max_threadgroup_memory_length{"maxThreadgroupMemoryLength"};
  Message<Bool, Int> supports_family{"supportsFamily:"};
  Message<Id> new_command_queue{"newCommandQueue"};
  Message<Id, UInt, UInt> new_buffer{"newBufferWithLength:options:"};
  Message<Id, Id, Id, Id*> new_library{"newLibraryWithSource:options:error:"};
  Message<Id, Id, UInt, void*, Id*> new_pipeline{
      "newComputePipelineStateWithDescriptor:options:reflection:error:"};
  Message<Id, Id, Id*> new_archive{"newBinaryArchiveWithDescriptor:error:"};
  // MTLBuffer
  Message<void*> contents{"contents"};
  // MTLCompileOptions; setMathMode: takes the place of setFastMathEnabled: since iOS 18
  Message<void, Int> set_math_mode{"setMathMode:"};
  Message<void, Bool> set_fast_math{"setFastMathEnabled:"};
  // MTLLibrary
  Message<Id, Id> new_function{"newFunctionWithName:"};
  // MTLComputePipelineDescriptor
  Message<void, Id> set_function{"setComputeFunction:"};
  Message<void, Id> set_label{"setLabel:"};
  Message<void, UInt> set_max_threads{"setMaxTotalThreadsPerThreadgroup:"};
  Message<void, Id> set_archives{"setBinaryArchives:"};
  // MTLComputePipelineState
  Message<UInt> max_threads{"maxTotalThreadsPerThreadgroup"};
  // MTLBinaryArchiveDescriptor and MTLBinaryArchive
  Message<void, Id> set_url{"setUrl:"};
  Message<Bool, Id, Id*> add_functions{"addComputePipelineFunctionsWithDescriptor:error:"};
  Message<Bool, Id, Id*> serialize{"serializeToURL:error:"};
  // MTLCommandQueue and MTLCommandBuffer
  Message<Id> command_buffer{"commandBuffer"};
  Message<Id> compute_encoder{"computeCommandEncoder"};
  Message<Id> blit_encoder{"blitCommandEncoder"};
  Message<void> commit{"commit"};
  Message<void> wait_until_completed{"waitUntilCompleted"};
  Message<UInt> status{"status"};
  Message<Id> error{"error"};
  // MTLCommandEncoder and its kinds
  Message<void> end_encoding{"endEncoding"};
  Message<void, Id> set_pipeline{"setComputePipelineState:"};
  Message<void, Id, UInt, UInt> set_buffer{"setBuffer:offset:atIndex:"};
  Message<void, const void*, UInt, UInt> set_bytes{"setBytes:length:atIndex:"};
  Message<void, Size, Size> dispatch{"dispatchThreadgroups:threadsPerThreadgroup:"};
  Message<void, Id, UInt, Id, UInt, UInt> copy{
      "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"};
  // Foundation: NSError, NSArray, NSURL
  Message<Int> code{"code"};
  Message<Id, Id> array_with_object{"arrayWithObject:"};
  Message<Id, Id> file_url{"fileURLWithPath:"};

  static const Api& get() {
    static const Api api;
    return api;
  }
};

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_API_H_
