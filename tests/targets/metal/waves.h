// AMD's matrix instructions, for kernels that tests compile for the emulator in place of an AMD
// GPU.
//
// The layouts are taken from AMD's documentation, not from targets/kernels/gpu/waves: the "Matrix
// Instruction Calculator" says for each instruction which register and lane hold A[i][k], B[k][j]
// and D[i][j].
#pragma once

#include "emulator.h"

namespace waves {

// Emulates v_wmma_f32_16x16x16_f16 on gfx11, wave32. A[i][k] is element k of lanes i and i + 16,
// which must be equal; B[k][j] is element k of lanes j and j + 16. D[i][j] is element i / 2 of lane
// j, for odd i of lane j + 16.
struct wmma {
  static constexpr int kLanes = 32, kOwn = 16, kSums = 8;
  static int lane(int line, int k, bool second) { return line + (second ? 16 : 0) + 0 * k; }
  static int element(int k) { return k; }
  static int row(int lane, int i) { return 2 * i + (lane >= 16 ? 1 : 0); }
};

// Emulates the instruction's layout on gfx12. A[i][k] is element k of lane i for k < 8, else
// element k - 8 of lane i + 16. D[i][j] is element i of lane j for i < 8, else element i - 8 of
// lane j + 16.
struct wmma12 {
  static constexpr int kLanes = 32, kOwn = 8, kSums = 8;
  static int lane(int line, int k, bool) { return k < 8 ? line : line + 16; }
  static int element(int k) { return k & 7; }
  static int row(int lane, int i) { return lane < 16 ? i : i + 8; }
};

// Emulates v_mfma_f32_16x16x16_f16 on gfx90a and gfx942, wave64. A[i][k] is element k mod 4 of lane
// i + 16 (k / 4). D[i][j] is element i mod 4 of lane j + 16 (i / 4).
struct mfma {
  static constexpr int kLanes = 64, kOwn = 4, kSums = 4;
  static int lane(int line, int k, bool) { return line + (k >> 2 << 4); }
  static int element(int k) { return k & 3; }
  static int row(int lane, int i) { return (lane >> 4 << 2) | i; }
};

template <class Unit>
void multiply(float* c, const half* a, const half* b, int line) {
  if (metal_lanes() != Unit::kLanes) metal_fail("multiplies with lanes that are not the unit's");
  struct Brought {
    half a[Unit::kOwn], b[Unit::kOwn];
  } mine;
  for (int i = 0; i < Unit::kOwn; ++i) mine.a[i] = a[i], mine.b[i] = b[i];
  const void* all = metal_exchange(&mine, sizeof mine, line);
  int lane = metal_lane();
  for (int i = 0; i < Unit::kSums; ++i) {
    float sum = 0;
    for (int k = 15; k >= 0; --k) {
      float product[2];
      for (int second = 0; second < 2; ++second) {
        auto left = metal::of_lane<Brought>(all, Unit::lane(Unit::row(lane, i), k, second));
        auto right = metal::of_lane<Brought>(all, Unit::lane(lane % 16, k, second));
        product[second] = float(left.a[Unit::element(k)]) * float(right.b[Unit::element(k)]);
      }
      if (__builtin_bit_cast(uint, product[0]) != __builtin_bit_cast(uint, product[1])) {
        metal_fail("has lanes that should be alike and are not");
      }
      sum += product[0];
    }
    c[i] += sum;
  }
}

}  // namespace waves

#define WAVES_UNIT(name)                                                                          \
  inline void waves_##name(float* c, const half* a, const half* b, int line = __builtin_LINE()) { \
    waves::multiply<waves::name>(c, a, b, line);                                                  \
  }
WAVES_UNIT(wmma)
WAVES_UNIT(wmma12)
WAVES_UNIT(mfma)
