// Instructions of sm_80 and later. Tests replace them by an emulator's. Source: PTX ISA 8.0,
// sections on mma.m16n8k16, cp.async, ld, prmt, lop3, shfl, griddepcontrol and half precision.
#ifndef WHERRY_INSTRUCTIONS
#define WHERRY_INSTRUCTIONS

namespace wherry {

using Word32 = unsigned int;  // two float16, or numbers of 8 or 4 bits

struct Half {  // a float16 in memory
  unsigned short bits;
};

// sums [16, 8] += a [16, 16] b [16, 8], float16 and float32, spread over the lanes of a warp.
// Lane l = 4 r + c has a[r, 2c], a[r + 8, 2c], a[r, 2c + 8], a[r + 8, 2c + 8] and the elements
// right of them, b[2c, r], b[2c + 1, r]; b[2c + 8, r], b[2c + 9, r], and sums of rows r and r + 8.
__device__ __forceinline__ void multiply_add(float (&sums)[4], const Word32 (&a)[4], Word32 b0,
                                             Word32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Streaming load that bypasses L1, which activations need: a block reads each weight once.
__device__ __forceinline__ uint4 load_once(const uint4* from) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(from));
  return v;
}

__device__ __forceinline__ Word32 load_once(const Word32* from) {
  Word32 v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}

// Volatile load: the compiler would hoist repeated loads out of a loop, and has no registers for
// them.
__device__ __forceinline__ uint4 load_volatile(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// Two float16 at a time, each result rounded to the nearest.
__device__ __forceinline__ Word32 minus(Word32 a, Word32 b) {
  Word32 d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ __forceinline__ Word32 times(Word32 a, Word32 b) {
  Word32 d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ __forceinline__ Word32 times_plus(Word32 a, Word32 b, Word32 c) {
  Word32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

__device__ __forceinline__ unsigned short nearest_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

__device__ __forceinline__ Word32 nearest_halves(float low, float high) {
  Word32 both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// (the low half of a, that of b); the same of the high ones.
__device__ __forceinline__ Word32 low_halves(Word32 a, Word32 b) {
  Word32 both;
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}

__device__ __forceinline__ Word32 high_halves(Word32 a, Word32 b) {
  Word32 both;
  asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}

// Bytes 0 and 2 of a word, or 1 and 3, each below the same byte of `above`: two integers of 16
// bits.
__device__ __forceinline__ Word32 even_bytes(Word32 a, Word32 above) {
  Word32 both;
  asm("prmt.b32 %0, %1, %2, 0x7250;" : "=r"(both) : "r"(a), "r"(above));
  return both;
}

__device__ __forceinline__ Word32 odd_bytes(Word32 a, Word32 above) {
  Word32 both;
  asm("prmt.b32 %0, %1, %2, 0x7351;" : "=r"(both) : "r"(a), "r"(above));
  return both;
}

// Byte `place` of a word as the upper byte of two integers of 16 bits.
__device__ __forceinline__ Word32 upper_bytes(Word32 w, int place) {
  Word32 both;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(both) : "r"(w), "r"(place * 0x1010 + 0x0404));
  return both;
}

// Four of the bytes of two words, 0 to 3 those of `low`, 4 to 7 those of `high`, by the lowest four
// numbers of 4 bits of `places`.
__device__ __forceinline__ Word32 bytes_at(Word32 low, Word32 high, Word32 places) {
  Word32 four;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(four) : "r"(low), "r"(high), "r"(places));
  return four;
}

// (w & kMask) | above: one instruction, of which the compiler makes two.
template <Word32 kMask>
__device__ __forceinline__ Word32 masked(Word32 w, Word32 above) {
  Word32 d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(w), "n"(kMask), "r"(above));
  return d;
}

// Waits until the kernel before has ended and what it wrote is there (sm_90; otherwise kernels begin
// one after the other). Only weights may be read earlier.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel begin, when all blocks have come here or ended.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The value of lane ^ mask (shuffle); all lanes of a warp must reach it.
__device__ __forceinline__ float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

// What lanes of a warp have written to shared memory before it, all of them read after it.
__device__ __forceinline__ void sync_warp() { __syncwarp(); }

// The compiler moves no load across it.
__device__ __forceinline__ void keep_order() { __syncwarp(); }

__device__ __forceinline__ float as_float(Half x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
}

// Asynchronous copy of 16 bytes from global to shared memory; complete after `wait_for_copies`.
__device__ __forceinline__ void start_copy(void* to, const void* from) {
  const Word32 shared = static_cast<Word32>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

__device__ __forceinline__ void end_batch_of_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kBatches>  // the newest copies, which may still be in flight
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kBatches) : "memory");
}

}  // namespace wherry
#endif
