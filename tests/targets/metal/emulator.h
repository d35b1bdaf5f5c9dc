// The interface between compiled kernels and the emulator; it includes nothing, as metal_stdlib
// explains.
#pragma once

namespace emulator {

// The arguments of one thread: buffers by index, plain values of eight bytes each.
struct Thread {
  void* const* buffers;
  const void* scalars;
  const unsigned* block;     // position of the thread's group in the grid: x, y, z
  const unsigned* position;  // position of the thread in its group: x, y, z
};

// Upper bound on the bytes that a lane exchanges with its SIMD group.
constexpr int kLaneBytes = 64;

struct Kernel {
  const char* name;
  void (*call)(Thread);
  int buffers;
  int scalars;
  const int* axes;  // axes of the extents after the arguments: 0-2 the grid, 3-5 the group
  int axis_count;
  char* memory;  // threadgroup memory of a group
  char* memory_end;
};

}  // namespace emulator

extern "C" {
// Launches a kernel with the signature of a tvm-ffi function: args is TVMFFIAny[count]; a nonzero
// result means that an error was set.
int metal_launch(const emulator::Kernel* kernel, const void* args, int count);
// Runs a kernel. scalars: eight bytes each; extents: of the grid along x, y, z, then of a group.
// Returns null or an error, which the caller frees.
char* metal_run(const emulator::Kernel* kernel, void* const* buffers, const void* scalars,
                const unsigned* extents);
void metal_barrier(bool of_threadgroup_memory, int line);
// Exchanges `bytes` bytes of each lane of the SIMD group at a source line; returns the bytes of all
// lanes, in steps of kLaneBytes.
const void* metal_exchange(const void* mine, int bytes, int line);
int metal_lane();
int metal_lanes();                  // number of lanes of a SIMD group
void metal_set_lanes(int lanes);    // 32 by default; other numbers emulate other GPUs
void metal_fail(const char* what);  // ends the thread and does not return
}
