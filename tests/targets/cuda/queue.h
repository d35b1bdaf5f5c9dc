// What the emulated device was asked for on the stream that everything goes to, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

namespace emulator {

// Guards all that the device is made of.
std::recursive_mutex& device_mutex();
using Lock = std::lock_guard<std::recursive_mutex>;

// A device is late as far as it may be: what it was asked for is done when somebody waits for it;
// else at once.
void set_late(bool late);

void ask(std::function<void()> run);
uint64_t submitted();  // so far
// Does what is left, of the first `count` that were asked for.
void wait_for(uint64_t count);
// Waits for all, as a call would that the host hoped to return at once.
void wait_for_all();
// How often that found something to wait for.
uint64_t waits();

// Memory of the host that the device reads and writes, and events: how many there are.
size_t host_handles();

// This thread calls a driver for the device. `current`: cudaSetDevice was called.
void set_context();
bool has_context();
bool push_context();
bool pop_context();

}  // namespace emulator
