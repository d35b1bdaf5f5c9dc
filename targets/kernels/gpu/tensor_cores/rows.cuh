// Rows of x before a linear, and of y after it.
#ifndef WHERRY_ROWS
#define WHERRY_ROWS

namespace wherry {

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int divided_up(int a, int b) { return (a + b - 1) / b; }

constexpr int kPrepareThreads = 256;

// The nearest float16; larger numbers are clamped, subnormal ones are 0: `emit.rounded`.
__device__ __forceinline__ Half kept_half(float x) {
  const float magnitude = fabsf(x);
  if (magnitude < 0x1p-14f) return {static_cast<unsigned short>(signbit(x) ? 0x8000 : 0)};
  if (magnitude > 65504.0f && magnitude <= 3.402823466e38f) x = copysignf(65504.0f, x);
  return {nearest_half(x)};
}

__device__ __forceinline__ float read(const float* from) { return *from; }
__device__ __forceinline__ float read(const Half* from) { return as_float(*from); }
__device__ __forceinline__ void write(float* to, float x) { *to = x; }
__device__ __forceinline__ void write(Half* to, float x) { *to = kept_half(x); }

// silu(gate) * up
__device__ __forceinline__ float gated(float gate, float up) {
  return gate / (1.0f + expf(fminf(-gate, 87.0f))) * up;
}

// Sum of a number over kPrepareThreads threads, in a fixed order; all threads have it. Each warp
// adds all numbers itself, which spares barriers; `shared` must not be written before the next one.
__device__ __forceinline__ float block_sum(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  const float* own = shared + threadIdx.x % 32;
  auto four = [&](int i) { return (own[i] + own[i + 128]) + (own[i + 64] + own[i + 192]); };
  float sum = four(0) + four(32);
#pragma unroll
  for (int half = 16; half > 0; half /= 2) sum += shuffle_xor(sum, half);
  return sum;
}

// 1 / sqrt(mean(x^2) + eps) of x [K], by a block of kPrepareThreads; `shared` has a float32 for each.
template <int kK, class X>
__device__ __forceinline__ float inverse_size(const X* x, unsigned char* shared, float eps) {
  float squares = 0.0f;
  for (int k = threadIdx.x; k < kK; k += kPrepareThreads) {
    const float v = read(x + k);
    squares = fmaf(v, v, squares);
  }
  const float total = block_sum(squares, reinterpret_cast<float*>(shared));
  return 1.0f / sqrtf(fmaf(total, 1.0f / kK, eps));
}

// As float16, of which subnormal numbers stay.
__device__ __forceinline__ Half half_of(const float* from) { return kept_half(*from); }
__device__ __forceinline__ Half half_of(const Half* from) { return *from; }

// Element k of x, normalized with kNormed, as float16.
template <bool kNormed, class X>
__device__ __forceinline__ Half prepared(const X* x, const void* norm, float inverse, int k) {
  if (!kNormed) return half_of(x + k);
  return kept_half(read(x + k) * inverse * static_cast<const float*>(norm)[k]);
}

// z [K] = float16 of x [K], or of x / sqrt(mean(x^2) + eps) * norm, by a block of kPrepareThreads;
// `shared` has a float32 for each thread.
template <int kK, bool kNormed, class X>
__device__ __forceinline__ void prepare_row(const void* x, const void* norm, void* z,
                                            unsigned char* shared, float eps) {
  const X* from = static_cast<const X*>(x);
  const float* factors = static_cast<const float*>(norm);
  Half* to = static_cast<Half*>(z);
  constexpr int kInRegisters = smaller(divided_up(kK, kPrepareThreads), 16);  // numbers in registers
  float in_registers[kInRegisters], register_factors[kInRegisters];
  auto each_in_register = [&](auto call) {
#pragma unroll
    for (int i = 0; i < kInRegisters; ++i) {
      const int k = threadIdx.x + i * kPrepareThreads;
      if (k < kK) call(k, in_registers[i], register_factors[i]);
    }
  };
  constexpr int kRest = kInRegisters * kPrepareThreads;
  each_in_register([&](int k, float& v, float& factor) {
    v = read(from + k);
    factor = kNormed ? factors[k] : 1.0f;
  });
  float inverse = 1.0f;
  if (kNormed) {
    float squares = 0.0f;
    each_in_register([&](int, float v, float) { squares = fmaf(v, v, squares); });
    for (int k = threadIdx.x + kRest; k < kK; k += kPrepareThreads) {
      const float v = read(from + k);
      squares = fmaf(v, v, squares);
    }
    const float total = block_sum(squares, reinterpret_cast<float*>(shared));
    inverse = 1.0f / sqrtf(fmaf(total, 1.0f / kK, eps));
  }
  auto put = [&](int k, float v, float factor) {
    if (kNormed) v = v * inverse * factor;
    to[k] = kept_half(v);
  };
  each_in_register(put);
  for (int k = threadIdx.x + kRest; k < kK; k += kPrepareThreads) {
    put(k, read(from + k), kNormed ? factors[k] : 1.0f);
  }
}

// A block for each row of x [m, K].
template <int kK, bool kNormed, class X>
__device__ __forceinline__ void prepare_rows(const void* x, const void* norm, void* z,
                                             unsigned char* shared, float eps) {
  const size_t at = size_t(blockIdx.x) * kK;
  prepare_row<kK, kNormed, X>(static_cast<const X*>(x) + at, norm, static_cast<Half*>(z) + at,
                              shared, eps);
}

}  // namespace wherry
#endif
