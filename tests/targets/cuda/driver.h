// What the memory, the kernels and the driver of the emulated device know of each other.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace emulator {

enum Status {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidContext = 201,
  kInvalidated = 901
};

// Whether the call of that name fails; see emulated_cuda_fault.
bool has_fault(const char* name);
void add_allocation(void* data, std::size_t bytes);
// Throws for what is none.
void remove_allocation(void* data);
// Whether all of it lies in one.
bool is_allocated(void* data, std::size_t bytes);
// Bytes that the host writes there.
void note_write(void* to, std::size_t bytes);
// Throws if this thread captures: a driver would refuse that, and end the capture.
void refuse_while_capturing(const char* what);
// Runs a kernel, or makes it a part of what the thread's stream captures.
void submit(const char* kernel, const std::vector<void*>& buffers, std::function<void()> run);

}  // namespace emulator
