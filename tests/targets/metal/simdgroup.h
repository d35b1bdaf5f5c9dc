// Functions and matrices of SIMD groups, for metal_stdlib.
//
// A lane has two elements of a matrix, as on devices. Which ones is unspecified, as on devices: a
// matrix can be filled, loaded, multiplied and stored, and nothing else compiles. Products and sums
// of lanes are added in an unusual order, so that kernels cannot rely on one.
// Source: Metal Shading Language Specification 2.3, 6.9.2 and 6.9.3.
#pragma once

#include "emulator.h"

namespace metal {

template <class T>
T of_lane(const void* all, int lane) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(all) + lane * emulator::kLaneBytes,
                   sizeof value);
  return value;
}

template <class T>
T simd_shuffle_xor(T value, ushort mask, int line = __builtin_LINE()) {
  return of_lane<T>(metal_exchange(&value, sizeof value, line), metal_lane() ^ mask);
}

inline void simdgroup_barrier(mem_flags, int line = __builtin_LINE()) {
  metal_exchange(&line, sizeof line, line);
}

template <class T, int kColumns, int kRows>
class simdgroup_matrix {
  static_assert(kColumns == 8 && kRows == 8, "the only size there is");
  T mine_[2] = {T(__builtin_nanf("")), T(__builtin_nanf(""))};
  // Address of the loaded matrix, which must be the same for all lanes.
  const void* from_ = nullptr;

  // Returns the index (8 * row + column) of a lane's first or second element.
  static int place(int lane, int i) { return (2 * lane + i + 57) * 53 % 64; }

  template <class U>
  friend void simdgroup_load(simdgroup_matrix<U, 8, 8>&, const U*, ulong, int, bool);
  template <class U>
  friend void simdgroup_store(simdgroup_matrix<U, 8, 8>, U*, ulong, int, bool);
  template <class U, int kC, int kR>
  friend simdgroup_matrix<U, kC, kR> make_filled_simdgroup_matrix(U);
  template <class U>
  friend void simdgroup_multiply_accumulate(simdgroup_matrix<U, 8, 8>&, simdgroup_matrix<U, 8, 8>,
                                            simdgroup_matrix<U, 8, 8>, simdgroup_matrix<U, 8, 8>,
                                            int);
};
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;

template <class T, int kColumns, int kRows>
simdgroup_matrix<T, kColumns, kRows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, kColumns, kRows> filled;
  filled.mine_[0] = filled.mine_[1] = value;
  return filled;
}

template <class T>
void simdgroup_load(simdgroup_matrix<T, 8, 8>& d, const T* from, ulong elements_per_row,
                    int origin = 0, bool transposed = false) {
  if (origin != 0) metal_fail("loads from an origin, which the emulator has not");
  for (int i = 0; i < 2; ++i) {
    int at = d.place(metal_lane(), i);
    int row = transposed ? at % 8 : at / 8, column = transposed ? at / 8 : at % 8;
    d.mine_[i] = from[ulong(row) * elements_per_row + ulong(column)];
  }
  d.from_ = from;
}

template <class T>
void simdgroup_store(simdgroup_matrix<T, 8, 8> a, T* to, ulong elements_per_row, int origin = 0,
                     bool transposed = false) {
  if (origin != 0) metal_fail("stores to an origin, which the emulator has not");
  for (int i = 0; i < 2; ++i) {
    int at = a.place(metal_lane(), i);
    int row = transposed ? at % 8 : at / 8, column = transposed ? at / 8 : at % 8;
    to[ulong(row) * elements_per_row + ulong(column)] = a.mine_[i];
  }
}

template <class T>
void simdgroup_multiply_accumulate(simdgroup_matrix<T, 8, 8>& d, simdgroup_matrix<T, 8, 8> a,
                                   simdgroup_matrix<T, 8, 8> b, simdgroup_matrix<T, 8, 8> c,
                                   int line = __builtin_LINE()) {
  struct Brought {
    T a[2], b[2];
    const void* from[2];
  } mine{{a.mine_[0], a.mine_[1]}, {b.mine_[0], b.mine_[1]}, {a.from_, b.from_}};
  const void* all = metal_exchange(&mine, sizeof mine, line);
  T left[64], right[64];
  for (int lane = 0; lane < metal_lanes(); ++lane) {
    auto other = of_lane<Brought>(all, lane);
    if (other.from[0] != mine.from[0] || other.from[1] != mine.from[1]) {
      metal_fail("multiplies matrices that lanes loaded from different places");
    }
    for (int i = 0; i < 2; ++i) {
      left[a.place(lane, i)] = other.a[i];
      right[a.place(lane, i)] = other.b[i];
    }
  }
  for (int i = 0; i < 2; ++i) {
    int at = a.place(metal_lane(), i), row = at / 8, column = at % 8;
    T sum = T(0);
    constexpr int order[] = {6, 1, 7, 3, 0, 4, 2, 5};
    for (int k : order) sum += left[8 * row + k] * right[8 * k + column];
    d.mine_[i] = sum + c.mine_[i];
  }
  d.from_ = nullptr;
}

}  // namespace metal
