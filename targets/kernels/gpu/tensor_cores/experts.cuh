// Linears of experts: a block reads weights for one slot (row, expert), or for a tile of slots of
// one expert. All add in the order of every linear (`weights.cuh`), and then over a row's experts
// in ascending order.
#ifndef WHERRY_EXPERTS
#define WHERRY_EXPERTS

namespace wherry {

enum Gate { kNoGate, kSilu, kGeluTanh, kClamped };

struct Clamp {  // of kClamped
  float alpha, limit;
};

// The fields of an `ExpertLinearSpec`: weights [kExperts, kN, kK], kTopK slots a row. kShared: the
// slots of a row read one row of x. Without kRouted slot k has expert k. kBias: float32 [kExperts,
// kN].
template <template <int, int> class Stored, int kExpertCount, int kSlotsOfRow, int kRowsOfWeight,
          int kColumnsOfWeight, bool kSharedRows, bool kIsRouted, bool kHasBias, int kGateOf>
struct Experts {
  static constexpr int kExperts = kExpertCount, kTopK = kSlotsOfRow, kN = kRowsOfWeight;
  static constexpr int kK = kColumnsOfWeight, kTiles = divided_up(kN, kRows);
  static constexpr bool kShared = kSharedRows, kRouted = kIsRouted, kGated = kGateOf != kNoGate;
  static constexpr int kWidth = kGated ? kN / 2 : kN;
  using Weights = Stored<kExperts * kTiles * kRows, kK>;

  // The result of a gate column's sum and of the up projection's.
  static __device__ __forceinline__ float result(const void* packed, const void* bias, int expert,
                                                 int column, float value, float up, Clamp clamp) {
    const int row = expert * (kTiles * kRows) + column;
    value *= Weights::factor(packed, row);
    if (kGated) up *= Weights::factor(packed, row + kWidth);
    if (kHasBias) {
      const float* own = static_cast<const float*>(bias) + expert * kN + column;
      value += own[0];
      if (kGated) up += own[kWidth];
    }
    if (kGateOf == kSilu) return gated(value, up);
    if (kGateOf == kGeluTanh) {  // value / 2 * (1 + tanh(u)) = value / (1 + exp(-2 u))
      const float twice = value * fmaf(value * value, 0.0713548163f, 1.59576912f);
      return value / (1.0f + expf(fminf(-twice, 87.0f))) * up;
    }
    if (kGateOf == kClamped) {
      const float gate = fminf(value, clamp.limit);
      const float other = fmaxf(fminf(up, clamp.limit), -clamp.limit) + 1.0f;
      return gate / (1.0f + expf(fminf(-gate * clamp.alpha, 87.0f))) * other;
    }
    return value;
  }
};

// Up to kSize slots of one expert; `count` may be 0. With routing, slots are sorted by expert, and
// those of expert e begin at starts[e]; its tiles begin at starts[e] / kSize + e, and the last may
// be empty, so that tiles are found without a table.
template <class E, int kSize>
struct SlotTile {
  const int* slots;
  int expert, begin, count;

  __device__ __forceinline__ SlotTile(const void* of_experts, const void* all, int tile, int n)
      : slots(static_cast<const int*>(all)) {
    if (!E::kRouted) {
      expert = tile % E::kExperts;
      begin = tile / E::kExperts * kSize;
      count = min(n - begin, kSize);
      return;
    }
    const int* starts = static_cast<const int*>(of_experts);
    int low = 0;
    for (int high = E::kExperts; high - low > 1;) {
      const int middle = (low + high) / 2;
      (starts[middle] / kSize + middle <= tile ? low : high) = middle;
    }
    const int first = starts[low];
    expert = low;
    begin = first + (tile - first / kSize - low) * kSize;
    count = min(starts[low + 1] - begin, kSize);
  }

  __device__ __forceinline__ int slot(int i) const {  // the last one for padding
    const int at = begin + min(i, count - 1);
    return E::kRouted ? slots[at] : at * E::kTopK + expert;
  }
  __device__ __forceinline__ const uint4* row(const void* x, int i) const {
    const int own = slot(i);
    return static_cast<const uint4*>(x) + size_t(E::kShared ? own / E::kTopK : own) * (E::kK / 8);
  }
};

// Tiles of up to 8 kTokenTiles slots, with a warp for each slice of K. x float16, starts and slots
// int32, y float32 or float16 [slots, width]; the grid is (row tiles of an expert / kRowTiles,
// tiles), shared memory as that of `gemv`.
template <class E, int kRowTiles, int kTokenTiles, int kAhead, class Y>
__device__ __forceinline__ void gemv_slots(const void* x, const void* starts, const void* slots,
                                           const void* bias, const void* packed, void* y,
                                           unsigned char* shared, int n, float alpha, float limit) {
  const SlotTile<E, 8 * kTokenTiles> tile(starts, slots, blockIdx.y, n);
  if (tile.count <= 0) return;
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const typename E::Weights weights(packed, lane);
  Slice<typename E::Weights, kRowTiles, kTokenTiles, kAhead> own(slice);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    const int of_expert = row_tile<E::kN, kRowTiles, E::kGated>(blockIdx.x, r);
    own.tiles[r] = weights.tile(tile.expert * E::kTiles + of_expert);
  }
  own.start();
  const uint4* rows[kTokenTiles];
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
    rows[t] = tile.row(x, t * 8 + lane / 4) + lane % 4 * 2;
  }
  float sums[kRowTiles][kTokenTiles][4] = {};
  own.multiply(rows, sums);

  const Partials<slices(E::kK), kRowTiles, kTokenTiles> partials{reinterpret_cast<float*>(shared)};
  partials.keep(slice, lane, sums);
  __syncthreads();
  constexpr int kColumns = kRowTiles / (E::kGated ? 2 : 1) * kRows;
  partials.template each<E::kGated>([&](int of_block, int i, auto sum, auto up) {
    const int column = blockIdx.x * kColumns + of_block;
    if (column < E::kWidth && i < tile.count) {
      const float other = E::kGated ? up() : 0.0f;
      const float value =
          E::result(packed, bias, tile.expert, column, sum(), other, {alpha, limit});
      write(static_cast<Y*>(y) + size_t(tile.slot(i)) * E::kWidth + column, value);
    }
  });
}

// Like `gemv_slots`, with the tiles of `gemm`.
template <class E, int kRowTiles, int kTokenTiles, int kWarps, int kStages, class Y>
__device__ __forceinline__ void gemm_slots(const void* x, const void* starts, const void* slots,
                                           const void* bias, const void* packed, void* y,
                                           unsigned char* shared, int n, float alpha, float limit) {
  const SlotTile<E, 8 * kTokenTiles> tile(starts, slots, blockIdx.y, n);
  if (tile.count <= 0) return;
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32;
  Totals<false, kRowTiles, kTokenTiles, kWarps * 32> totals(shared);
  multiply_tokens<typename E::Weights, kRowTiles, kTokenTiles, kWarps, kStages>(
      typename E::Weights(packed, threadIdx.x % 32),
      [&](int r) {
        return tile.expert * E::kTiles + row_tile<E::kN, kRowTiles, E::kGated>(warp, r);
      },
      [&](int i) { return tile.row(x, i); }, shared, totals);
  constexpr int kColumns = kRowTiles / (E::kGated ? 2 : 1) * kRows;
  each_total<E::kGated, kRowTiles, kTokenTiles>(
      totals, [&](int of_warp, int i, float value, float up) {
        const int column = warp * kColumns + of_warp;
        if (column < E::kWidth && i < tile.count) {
          value = E::result(packed, bias, tile.expert, column, value, up, {alpha, limit});
          write(static_cast<Y*>(y) + size_t(tile.slot(i)) * E::kWidth + column, value);
        }
      });
}

}  // namespace wherry
#endif
