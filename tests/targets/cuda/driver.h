// What the memory, the kernels and the driver of the emulated device know of each other.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace emulator {

void add_allocation(void* data, std::size_t bytes);
// Throws for what is none.
void remove_allocation(void* data);
// Bytes that the host wrote there.
void note_write(void* to, std::size_t bytes);
// Throws if this thread captures: a driver would refuse that, and end the capture.
void refuse_while_capturing(const char* what);
// Runs a kernel, or makes it a part of what the thread's stream captures.
void submit(const char* kernel, const std::vector<void*>& buffers, std::function<void()> run);

}  // namespace emulator
