// Many tokens: a block has 8 kTokenTiles tokens, whose chunks come to shared memory some ahead of
// their use, and each of its warps kRowTiles row tiles of the weight, which no other warp opens.
#ifndef WHERRY_MANY_ROWS
#define WHERRY_MANY_ROWS

namespace wherry {

// Sums of row tiles `tile(r)` of the weight and tokens whose rows of x begin at `row(token)`.
// Shared memory is kStages * kTokenTiles * 1024 bytes.
//
// A chunk of a token is 8 units of 16 bytes. Lanes read units in two steps of 2 from each other, of
// two tokens in a quarter of a warp: unit u of token t lies at u ^ (t % 2), and these are 8 others.
template <class Weights, int kRowTiles, int kTokenTiles, int kWarps, int kStages, class Tile,
          class Row>
__device__ __forceinline__ void multiply_tokens(const Weights& weights, Tile tile, Row row,
                                                unsigned char* shared,
                                                float (&totals)[kRowTiles][kTokenTiles][4]) {
  constexpr int kChunks = Weights::kChunks, kSlices = slices(kChunks * kChunk);
  constexpr int kUnits = kTokenTiles * 64, kStepsOfPiece = kSteps / Weights::kPieces;
  constexpr int kCopies = divided_up(kUnits, kWarps * 32);  // of a thread, for a chunk
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

  int chunk = 0;
  for (int slice = 0; slice < kSlices; ++slice) {
    float sums[kRowTiles][kTokenTiles][4] = {};
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
        uint4 b[kTokenTiles];
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          const int token = t * 8 + lane / 4, unit = lane % 4 * 2 + half;
          b[t] = stage[token * 8 + (unit ^ (token % 2))];
        }
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const int step = half * 2 + odd, own = step / kStepsOfPiece;
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            Word a[4];
            Weights::open(now[r][own], step, a);
            if (Weights::kPieces > 1 && step % kStepsOfPiece == kStepsOfPiece - 1 && more) {
              now[r][own] = weights.load(tile(r), chunk + 1, own);
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
}

// `put(column of the warp, token of the block, its sum, that of what it gates)`, once each.
template <bool kGated, int kRowTiles, int kTokenTiles, class Put>
__device__ __forceinline__ void each_total(const float (&totals)[kRowTiles][kTokenTiles][4],
                                           Put put) {
  constexpr int kTileStep = kGated ? 2 : 1;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < kRowTiles; r += kTileStep) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = r / kTileStep * kRows + lane / 4 + i / 2 * 8;
        const int token = t * 8 + lane % 4 * 2 + i % 2;
        put(column, token, totals[r][t][i], totals[(r + 1) % kRowTiles][t][i]);
      }
    }
  }
}

// x float16 [m, K], y float32 or float16 [m, N, or N / 2 if gated], residual as y.
// The grid is (row tiles of all warps of a block, tokens / (8 kTokenTiles)).
template <template <int, int> class Stored, int kN, int kK, int kRowTiles, int kTokenTiles,
          int kWarps, int kStages, bool kGated, bool kResidual, class Y>
__device__ __forceinline__ void many_rows(const void* x, const void* packed, const void* residual,
                                          void* y, unsigned char* shared, int m) {
  using Weights = Stored<kN, kK>;
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const int first_token = blockIdx.y * (8 * kTokenTiles);
  float totals[kRowTiles][kTokenTiles][4] = {};
  multiply_tokens<Weights, kRowTiles, kTokenTiles, kWarps, kStages>(
      Weights(packed, threadIdx.x % 32),
      [&](int r) { return row_tile<kN, kRowTiles, kGated>(warp, r); },
      [&](int token) {
        const size_t row = min(first_token + token, m - 1);
        return static_cast<const uint4*>(x) + row * (kK / 8);
      },
      shared, totals);
  constexpr int kWidth = kGated ? kN / 2 : kN, kColumns = kRowTiles / (kGated ? 2 : 1) * kRows;
  each_total<kGated>(totals, [&](int of_warp, int of_tile, float value, float up) {
    const int column = warp * kColumns + of_warp, token = first_token + of_tile;
    if (column < kWidth && token < m) {
      const size_t at = size_t(token) * kWidth + column;
      if (kGated) value = gated(value, up);
      if (kResidual) value = static_cast<const float*>(residual)[at] + value;
      write(static_cast<Y*>(y) + at, value);
    }
  });
}

}  // namespace wherry
#endif
