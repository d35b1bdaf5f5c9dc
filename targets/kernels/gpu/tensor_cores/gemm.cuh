// GEMM: a block has 8 kTokenTiles tokens, whose chunks are prefetched into shared memory, and each
// of its warps dequantizes kRowTiles row tiles of the weight.
#ifndef WHERRY_GEMM
#define WHERRY_GEMM

namespace wherry {

// A lane's running totals over slices.
template <bool kSharedTotals, int kRowTiles, int kTokenTiles, int kThreads>
struct Totals {                                 // in registers
  static constexpr int kAtATime = kTokenTiles;  // token tiles that a lane reads at once
  static constexpr int kUnrolled = kTokenTiles;
  float values[kRowTiles][kTokenTiles][4];

  __device__ __forceinline__ explicit Totals(unsigned char*) {}

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) values[r][t][i] = 0.0f;
      }
    }
  }
  __device__ __forceinline__ void add(int r, int t, const float (&sums)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[r][t][i] += sums[i];
  }
  __device__ __forceinline__ float4 of(int r, int t) const {
    return {values[r][t][0], values[r][t][1], values[r][t][2], values[r][t][3]};
  }
};

// Totals in shared memory, because the sums of twice as many token tiles leave no registers. Each
// thread has its own places, adjacent to its neighbours': no barriers, and no bank conflicts.
template <int kRowTiles, int kTokenTiles, int kThreads>
struct Totals<true, kRowTiles, kTokenTiles, kThreads> {
  static constexpr int kAtATime = 2;  // with four, sm_80 lacks registers
  static constexpr int kUnrolled = 1;
  float4* own;  // [kRowTiles, kTokenTiles, kThreads], from this thread's on

  __device__ __forceinline__ explicit Totals(unsigned char* shared)
      : own(reinterpret_cast<float4*>(shared) + threadIdx.x) {}
  __device__ __forceinline__ float4& at(int r, int t) const {
    return own[(r * kTokenTiles + t) * kThreads];
  }
  __device__ __forceinline__ void clear() const {
#pragma unroll
    for (int i = 0; i < kRowTiles * kTokenTiles; ++i) own[i * kThreads] = {0, 0, 0, 0};
  }
  __device__ __forceinline__ void add(int r, int t, const float (&sums)[4]) const {
    const float4 before = at(r, t);
    at(r, t) = {before.x + sums[0], before.y + sums[1], before.z + sums[2], before.w + sums[3]};
  }
  __device__ __forceinline__ float4 of(int r, int t) const { return at(r, t); }
};

// Sums of row tiles `tile(r)` of the weight and tokens whose rows of x begin at `row(token)`.
// Shared memory is kStages * kTokenTiles * 1024 bytes.
//
// A chunk of a token is 8 units of 16 bytes. A quarter of a warp reads every other unit of two
// tokens: unit u of token t is at u ^ (t % 2), so these are 8 different banks.
template <class Weights, int kRowTiles, int kTokenTiles, int kWarps, int kStages, class Tile,
          class Row, class Sum>
__device__ __forceinline__ void multiply_tokens(const Weights& weights, Tile tile, Row row,
                                                unsigned char* shared, Sum& totals) {
  constexpr int kChunks = Weights::kChunks, kSlices = slices(kChunks * kChunk);
  constexpr int kUnits = kTokenTiles * 64, kStepsOfPiece = kSteps / Weights::kPieces;
  constexpr int kCopies = divided_up(kUnits, kWarps * 32);  // of a thread, for a chunk
  static_assert(kTokenTiles % Sum::kAtATime == 0, "none is left over");
  const int lane = threadIdx.x % 32;
  uint4* stages = reinterpret_cast<uint4*>(shared);

  const uint4* sources[kCopies];
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int unit = threadIdx.x + i * kWarps * 32;
    sources[i] = row(unit / 8) + unit % 8;
  }
  auto start = [&](int chunk) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int unit = threadIdx.x + i * kWarps * 32;
      if (kUnits % (kWarps * 32) == 0 || unit < kUnits) {
        uint4* to = stages + chunk % kStages * kUnits + (unit ^ (unit / 8 % 2));
        start_copy(to, sources[i] + chunk * 8);
      }
    }
  };
#pragma unroll
  for (int chunk = 0; chunk < kStages - 1; ++chunk) {
    if (chunk < kChunks) start(chunk);
    end_batch_of_copies();
  }

  Piece now[kRowTiles][Weights::kPieces], next[kRowTiles];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < Weights::kPieces; ++i) now[r][i] = weights.load(tile(r), 0, i);
  }
  totals.clear();

  int chunk = 0;
  float sums[kRowTiles][kTokenTiles][4] = {};
  for (int slice = 0; slice < kSlices; ++slice) {
    const int end = first_chunk(kChunks * kChunk, slice + 1);
    for (; chunk < end; ++chunk) {
      wait_for_copies<kStages - 2>();
      __syncthreads();
      if (chunk + kStages - 1 < kChunks) start(chunk + kStages - 1);
      end_batch_of_copies();
      const bool more = chunk + 1 < kChunks;
      if (Weights::kPieces == 1 && more) {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) next[r] = weights.load(tile(r), chunk + 1, 0);
      }
      const uint4* stage = stages + chunk % kStages * kUnits;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Word32 a[2][kRowTiles][4];
#pragma unroll
        for (int first = 0; first < kTokenTiles; first += Sum::kAtATime) {
          uint4 b[Sum::kAtATime];
#pragma unroll
          for (int t = 0; t < Sum::kAtATime; ++t) {
            const int token = (first + t) * 8 + lane / 4, unit = lane % 4 * 2 + half;
            b[t] = stage[token * 8 + (unit ^ (token % 2))];
          }
#pragma unroll
          for (int odd = 0; odd < 2; ++odd) {
            const int step = half * 2 + odd, own = step / kStepsOfPiece;
            const bool used = first + Sum::kAtATime == kTokenTiles &&
                              step % kStepsOfPiece == kStepsOfPiece - 1;  // up
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
              if (first == 0) Weights::open(now[r][own], step, a[odd][r]);
#pragma unroll
              for (int t = 0; t < Sum::kAtATime; ++t) {
                multiply_add(sums[r][first + t], a[odd][r], odd ? b[t].z : b[t].x,
                             odd ? b[t].w : b[t].y);
              }
              if (Weights::kPieces > 1 && used && more) {
                now[r][own] = weights.load(tile(r), chunk + 1, own);
              }
            }
          }
          if (half == 1 && chunk + 1 == end) {  // overlaps with the multiplication of other tiles
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
              for (int t = first; t < first + Sum::kAtATime; ++t) {
                totals.add(r, t, sums[r][t]);
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[r][t][i] = 0.0f;
              }
            }
          }
        }
      }
      if (Weights::kPieces == 1) {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) now[r][0] = next[r];
      }
    }
  }
}

// Calls `put(column of the warp, token of the block, sum, the up projection's sum)` once for each.
template <bool kGated, int kRowTiles, int kTokenTiles, class Sum, class Put>
__device__ __forceinline__ void each_total(const Sum& totals, Put put) {
  constexpr int kTileStep = kGated ? 2 : 1;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < kRowTiles; r += kTileStep) {
#pragma unroll(Sum::kUnrolled)
    for (int t = 0; t < kTokenTiles; ++t) {
      const float4 value = totals.of(r, t), up = totals.of((r + 1) % kRowTiles, t);
      const int column = r / kTileStep * kRows + lane / 4, token = t * 8 + lane % 4 * 2;
      put(column, token, value.x, up.x);
      put(column, token + 1, value.y, up.y);
      put(column + 8, token, value.z, up.z);
      put(column + 8, token + 1, value.w, up.w);
    }
  }
}

// x float16 [m, K], y float32 or float16 [m, N, or N / 2 if gated], residual as y. Blocks seem to
// start in the order of x, then y; blocks that run at once should share loads: they have the tokens
// of a patch of kPatch tiles, and as many weights as other blocks fit. The grid is (tiles of a
// patch, patches * row tiles of all warps of a block). Shared memory has the chunks of tokens and,
// with kSharedTotals, the totals.
template <template <int, int> class Stored, int kN, int kK, int kRowTiles, int kTokenTiles,
          int kWarps, int kStages, int kPatch, bool kSharedTotals, bool kGated, bool kResidual,
          class Y>
__device__ __forceinline__ void gemm(const void* x, const void* packed, const void* residual,
                                     void* y, unsigned char* shared, int m) {
  using Weights = Stored<kN, kK>;
  constexpr int kAcross = divided_up(Weights::kTiles, kRowTiles * kWarps);
  const int warp = blockIdx.y % kAcross * kWarps + threadIdx.x / 32;
  const int first_token = (blockIdx.y / kAcross * kPatch + blockIdx.x) * (8 * kTokenTiles);
  if (first_token >= m) return;  // padding of the last patch
  Totals<kSharedTotals, kRowTiles, kTokenTiles, kWarps * 32> totals(shared +
                                                                    kStages * kTokenTiles * 1024);
  multiply_tokens<Weights, kRowTiles, kTokenTiles, kWarps, kStages>(
      Weights(packed, threadIdx.x % 32),
      [&](int r) { return row_tile<kN, kRowTiles, kGated>(warp, r); },
      [&](int token) {
        const size_t row = min(first_token + token, m - 1);
        return static_cast<const uint4*>(x) + row * (kK / 8);
      },
      shared, totals);
  constexpr int kWidth = kGated ? kN / 2 : kN, kColumns = kRowTiles / (kGated ? 2 : 1) * kRows;
  each_total<kGated, kRowTiles, kTokenTiles>(
      totals, [&](int of_warp, int of_tile, float value, float up) {
        const int column = warp * kColumns + of_warp, token = first_token + of_tile;
        if (column < kWidth && token < m) {
          const size_t at = size_t(token) * kWidth + column;
          value *= Weights::factor(packed, column);
          if (kGated) value = gated(value, up * Weights::factor(packed, kWidth + column));
          if (kResidual) value = static_cast<const float*>(residual)[at] + value;
          write(static_cast<Y*>(y) + at, value);
        }
      });
}

}  // namespace wherry
#endif
