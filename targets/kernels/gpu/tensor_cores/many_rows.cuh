// Many tokens: a block has 8 kTokenTiles tokens, whose chunks come to shared memory some ahead of
// their use, and each of its warps kRowTiles row tiles of the weight, which no other warp opens.
#ifndef WHERRY_MANY_ROWS
#define WHERRY_MANY_ROWS

namespace wherry {

// x float16 [m, K], y float32 or float16 [m, N, or N / 2 if gated], residual as y.
// The grid is (row tiles of all warps of a block, tokens / (8 kTokenTiles)); shared memory is
// kStages * kTokenTiles * 1024 bytes.
//
// A chunk of a token is 8 units of 16 bytes. Lanes read units in two steps of 2 from each other, of
// two tokens in a quarter of a warp: unit u of token t lies at u ^ (t % 2), and these are 8 others.
template <template <int, int> class Stored, int kN, int kK, int kRowTiles, int kTokenTiles,
          int kWarps, int kStages, bool kGated, bool kResidual, class Y>
__device__ __forceinline__ void many_rows(const void* x, const void* packed, const void* residual,
                                          void* y, unsigned char* shared, int m) {
  using Weights = Stored<kN, kK>;
  constexpr int kChunks = kK / kChunk, kSlices = slices(kK), kTokens = 8 * kTokenTiles;
  constexpr int kCopies = divided_up(kTokens * 8, kWarps * 32);  // of a thread, for a chunk
  constexpr int kUnits = kTokens * 8;
  const int lane = threadIdx.x % 32, warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const int first_token = blockIdx.y * kTokens;
  const Weights weights(packed, lane);
  uint4* stages = reinterpret_cast<uint4*>(shared);
  auto tile = [&](int r) { return row_tile<kN, kRowTiles, kGated>(warp, r); };

  const uint4* sources[kCopies];
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int unit = threadIdx.x + i * kWarps * 32;
    const int token = min(first_token + unit / 8, m - 1);
    sources[i] = static_cast<const uint4*>(x) + size_t(token) * (kK / 8) + unit % 8;
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

  float totals[kRowTiles][kTokenTiles][4] = {};
  int chunk = 0;
  for (int slice = 0; slice < kSlices; ++slice) {
    float sums[kRowTiles][kTokenTiles][4] = {};
    const int end = first_chunk(kK, slice + 1);
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
        uint4 b[kTokenTiles];
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          const int token = t * 8 + lane / 4, unit = lane % 4 * 2 + half;
          b[t] = stage[token * 8 + (unit ^ (token % 2))];
        }
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const int step = half * 2 + odd;
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            Word a[4];
            Weights::open(now[r][Weights::kPieces == 1 ? 0 : step], step, a);
            if (Weights::kPieces > 1 && more) {
              now[r][step % Weights::kPieces] = weights.load(tile(r), chunk + 1, step);
            }
#pragma unroll
            for (int t = 0; t < kTokenTiles; ++t) {
              multiply_add(sums[r][t], a, odd ? b[t].z : b[t].x, odd ? b[t].w : b[t].y);
            }
          }
        }
      }
      if (Weights::kPieces == 1) {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) now[r][0] = next[r];
      }
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) totals[r][t][i] += sums[r][t][i];
      }
    }
  }

  constexpr int kWidth = kGated ? kN / 2 : kN, kTileStep = kGated ? 2 : 1;
#pragma unroll
  for (int r = 0; r < kRowTiles; r += kTileStep) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int tiles = warp * (kRowTiles / kTileStep) + r / kTileStep;
        const int row = tiles * kRows + lane / 4 + i / 2 * 8;
        const int token = first_token + t * 8 + lane % 4 * 2 + i % 2;
        if (row < kWidth && token < m) {
          const size_t at = size_t(token) * kWidth + row;
          float value = totals[r][t][i];
          if (kGated) value = gated(value, totals[(r + 1) % kRowTiles][t][i]);
          if (kResidual) value = static_cast<const float*>(residual)[at] + value;
          write(static_cast<Y*>(y) + at, value);
        }
      }
    }
  }
}

}  // namespace wherry
#endif
