// What our kernels, and those that TVM generates for us, use of CUDA C++, as C++ for g++.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define threadIdx emulator::thread_index
#define blockIdx emulator::block_index
#define __syncthreads() emulator::sync_block(__LINE__)

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct float2 {
  float x, y;
};

using std::copysign;
using std::signbit;
#define CUDA_ORDER(type)                                    \
  inline type min(type a, type b) { return b < a ? b : a; } \
  inline type max(type a, type b) { return a < b ? b : a; }
CUDA_ORDER(float)
CUDA_ORDER(int)
CUDA_ORDER(unsigned)
CUDA_ORDER(std::int64_t)
#undef CUDA_ORDER
template <class T>
T __ldg(const T* from) {
  return *from;
}

// In the place of instructions.cuh.
#define WHERRY_INSTRUCTIONS
namespace wherry {

using Word32 = unsigned int;
struct Half {
  unsigned short bits;
};

using emulator::end_batch_of_copies;
using emulator::shuffle_xor;
using emulator::start_copy;

template <int kBatches>
void wait_for_copies() {
  emulator::wait_for_copies(kBatches);
}

inline void multiply_add(float (&sums)[4], const Word32 (&a)[4], Word32 b0, Word32 b1) {
  emulator::multiply_add(sums, a, b0, b1);
}

inline uint4 load_once(const uint4* from) { return *from; }
inline Word32 load_once(const Word32* from) { return *from; }
inline uint4 load_volatile(const uint4* from) { return *from; }

inline float as_float(Half x) {
  _Float16 value;
  std::memcpy(&value, &x, sizeof value);
  return static_cast<float>(value);
}
inline unsigned short nearest_half(float x) {
  _Float16 value = static_cast<_Float16>(x);
  unsigned short bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// In the place of group_instructions.cuh; without its multiplications, for which groups.cuh has
// others.
#define WHERRY_GROUP_INSTRUCTIONS
struct Barrier {
  unsigned long long bits;
};
using emulator::arrive_after_copies;
using emulator::copy_in_bulk;
using emulator::start_barrier;
using emulator::wait_for;
inline void arrive(Barrier* barrier) { emulator::arrive(barrier, 0); }
inline void arrive_and_expect(Barrier* barrier, int bytes) { emulator::arrive(barrier, bytes); }
inline void show_barriers() {}
inline Word32 shared_address(const void* at) {
  return static_cast<Word32>(reinterpret_cast<std::uintptr_t>(at));
}
template <int kThreads>
void sync_some() {
  emulator::sync_some(kThreads);
}

inline void keep_order() {}
inline void wait_for_inputs() {}
inline void let_next_begin() {}
inline void sync_warp() { emulator::shuffle_xor(0, 0); }

template <Word32 kMask>
Word32 masked(Word32 w, Word32 above) {
  return (w & kMask) | above;
}

inline Word32 nearest_halves(float low, float high) {
  return nearest_half(low) | Word32{nearest_half(high)} << 16;
}
inline Word32 low_halves(Word32 a, Word32 b) { return (a & 0xffffu) | b << 16; }
inline Word32 even_bytes(Word32 a, Word32 above) {
  return (a & 0x00ff00ffu) | (above & 0xff00ff00u);
}
inline Word32 odd_bytes(Word32 a, Word32 above) { return even_bytes(a >> 8, above); }
inline Word32 bytes_at(Word32 low, Word32 high, Word32 places) {
  Word32 four = 0;
  for (int i = 0; i < 4; ++i) {  // with bit 3 eight times the sign of a byte
    const int place = places >> (4 * i) & 15u;
    const Word32 byte = (place & 4 ? high : low) >> (8 * (place & 3)) & 0xffu;
    four |= (place & 8 ? byte >> 7 ? 0xffu : 0u : byte) << (8 * i);
  }
  return four;
}
inline Word32 upper_bytes(Word32 w, int place) { return (w >> (8 * place) & 0xffu) * 0x01000100u; }
inline Word32 high_halves(Word32 a, Word32 b) { return a >> 16 | (b & 0xffff0000u); }

template <class F>
Word32 both(Word32 a, Word32 b, Word32 c, F f) {
  Word32 result = 0;
  for (int i = 0; i < 2; ++i) {
    auto part = [&](Word32 w) { return as_float({static_cast<unsigned short>(w >> (16 * i))}); };
    result |= Word32{nearest_half(f(part(a), part(b), part(c)))} << (16 * i);
  }
  return result;
}
// In float32 each is exact but the last, whose numbers here are too: the conversion alone rounds.
inline Word32 minus(Word32 a, Word32 b) {
  return both(a, b, 0, [](float x, float y, float) { return x - y; });
}
inline Word32 times(Word32 a, Word32 b) {
  return both(a, b, 0, [](float x, float y, float) { return x * y; });
}
inline Word32 times_plus(Word32 a, Word32 b, Word32 c) {
  return both(a, b, c, [](float x, float y, float z) { return std::fma(x, y, z); });
}

}  // namespace wherry
