// float16 as TVM's code for CUDA has it.
#pragma once

#include <cuda.h>

using half = _Float16;
using __half = half;
struct __half2 {
  half x, y;
};

using half2 = __half2;

inline bool __hgt(half a, half b) { return a > b; }
inline bool __hlt(half a, half b) { return a < b; }
inline float __half2float(half x) { return static_cast<float>(x); }
inline half __float2half(float x) { return static_cast<half>(x); }
inline half __float2half_rn(float x) { return static_cast<half>(x); }
