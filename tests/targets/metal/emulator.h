// What compiled kernels and the emulator know of each other; includes nothing, see metal_stdlib.
#pragma once

namespace emulator {

// Arguments of one thread: buffers by index, plain values eight bytes each.
struct Thread {
  void* const* buffers;
  const void* scalars;
  const unsigned* block;     // position of its group in the grid, x y z
  const unsigned* position;  // its position in the group
};

constexpr int kLaneBytes = 64;  // that a lane of a SIMD group can bring

struct Kernel {
  const char* name;
  void (*call)(Thread);
  int buffers;
  int scalars;
  const int* axes;  // of the extents after the arguments: 0-2 the grid, 3-5 the group
  int axis_count;
  char* memory;  // of a group
  char* memory_end;
};

}  // namespace emulator

extern "C" {
// A function of tvm-ffi: args is TVMFFIAny[count]; not 0: an error was set.
int metal_launch(const emulator::Kernel* kernel, const void* args, int count);
void metal_barrier(bool of_threadgroup_memory, int line);
// What all lanes of the SIMD group bring to a line, in steps of kLaneBytes; `bytes` of each.
const void* metal_exchange(const void* mine, int bytes, int line);
int metal_lane();
int metal_lanes();                  // of a SIMD group
void metal_set_lanes(int lanes);    // 32, unless other GPUs are to be emulated
void metal_fail(const char* what);  // does not return
}
