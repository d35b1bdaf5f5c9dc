// What compiled kernels and the emulator know of each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

struct Extents {
  unsigned x, y, z;
};

struct Kernel {
  const char* name;
  void (*call)(void* const* buffers, const std::int64_t* scalars);
  int buffers;
  int scalars;
  const int* axes;  // of what follows the arguments: 0-2 the grid, 3-5 the block, 6 shared bytes
  int axis_count;
  unsigned char* shared;  // that the launch gives its size
  std::size_t most_shared;
};

// Of the thread that runs.
extern Extents thread_index, block_index;

void sync_block(int line);
// See multiply_add in instructions.cuh: all lanes of a warp come here.
void multiply_add(float* sums, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1);
float shuffle_xor(float value, int mask);  // of lane ^ mask; as `multiply_add`
void start_copy(void* to, const void* from);
void end_batch_of_copies();
void wait_for_copies(int batches);
// See group_instructions.cuh; a barrier is 8 bytes of shared memory.
void start_barrier(void* barrier, int arrivals);
void wait_for(void* barrier, unsigned parity);
void arrive(void* barrier, int expected_bytes);
void arrive_after_copies(void* barrier);
void copy_in_bulk(void* to, const void* from, int bytes, void* barrier);
void sync_some(int threads);

}  // namespace emulator

extern "C" int cuda_launch(const emulator::Kernel* kernel, const void* args, int count);
