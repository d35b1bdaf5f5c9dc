// Emulates cooperative matrices: tiles that a block multiplies, for kernels that tests compile for
// the emulator in place of a Vulkan device. See targets/kernels/gpu/cooperative/intrinsics.py.
#pragma once

#include "emulator.h"

namespace matrices {

constexpr int kSide = 64, kThreads = 128;
inline float sums[kSide][kSide];  // one block's sums, because blocks run one after the other

// Calls f for each sum that a thread owns.
template <class F>
void own(int t, F f) {
  int half = kSide * kSide / kThreads;
  for (int i = 0; i < half; ++i) f(t % kSide, t / kSide * half + i);
}

}  // namespace matrices

inline void matrices_begin(int t) {
  matrices::own(t, [](int row, int column) { matrices::sums[row][column] = 0; });
}

inline void matrices_multiply(int t, const half* x, const half* w, int stride, int count) {
  matrices::own(t, [&](int row, int column) {
    for (int k = count - 1; k >= 0; --k) {
      matrices::sums[row][column] += float(x[row * stride + k]) * float(w[column * stride + k]);
    }
  });
}

inline void matrices_store(int t, float* into, int stride) {
  matrices::own(
      t, [&](int row, int column) { into[row * stride + column] = matrices::sums[row][column]; });
}
