// A few tokens: weights are read once, as fast as memory gives them. A block has some row tiles of
// the weight, and a warp for each slice of K.
#ifndef WHERRY_FEW_ROWS
#define WHERRY_FEW_ROWS

namespace wherry {

struct Tokens {  // a lane's part of a chunk of eight tokens
  uint4 half[2];
};

// x float16 [m, K], y float32 or float16 [m, N, or N / 2 if gated], residual as y. Or, kNormed, x
// float32 [K], which every block normalises for itself while its weights are under way.
// A lane has kAhead pieces of each row tile under way: 4 or 8. The grid is (row tiles / kRowTiles,
// tokens / (8 kTokenTiles)); shared memory is kSlices * kRowTiles * kTokenTiles * 512 bytes,
// of a kNormed one 2 K more.
template <template <int, int> class Stored, int kN, int kK, int kRowTiles, int kTokenTiles,
          int kAhead, bool kNormed, bool kGated, bool kResidual, class Y>
__device__ __forceinline__ void few_rows(const void* x, const void* norm, const void* packed,
                                         const void* residual, void* y, unsigned char* shared,
                                         int m, float eps) {
  using Weights = Stored<kN, kK>;
  constexpr int kSlices = slices(kK);
  constexpr int kChunksAhead = kAhead / Weights::kPieces;
  constexpr int kTokensAhead = kTokenTiles >= 4 ? 1 : 4 / kTokenTiles;  // chunks
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int begin = first_chunk(kK, slice), end = first_chunk(kK, slice + 1);
  const int first_token = blockIdx.y * (8 * kTokenTiles);
  const Weights weights(packed, lane);

  auto tile = [&](int r) { return row_tile<kN, kRowTiles, kGated>(blockIdx.x, r); };

  Piece pieces[kRowTiles][kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    const int chunk = begin + i / Weights::kPieces;
    if (chunk < end) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        pieces[r][i] = weights.load(tile(r), chunk, i % Weights::kPieces);
      }
    }
  }
  if (kNormed) {
    unsigned char* z = shared;
    shared += kK * 2;
    prepare_row<kK, true, float>(x, norm, z, shared, eps);
    __syncthreads();
    x = z;
  }
  const uint4* rows[kTokenTiles];
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
    const int token = kNormed ? 0 : min(first_token + t * 8 + lane / 4, m - 1);
    rows[t] = static_cast<const uint4*>(x) + size_t(token) * (kK / 8) + lane % 4 * 2;
  }
  auto tokens = [&](int t, int chunk) -> Tokens {
    return {rows[t][chunk * 8], rows[t][chunk * 8 + 1]};
  };
  Tokens given[kTokenTiles][kTokensAhead];
#pragma unroll
  for (int i = 0; i < kTokensAhead; ++i) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
      if (begin + i < end) given[t][i] = tokens(t, begin + i);
    }
  }

  float sums[kRowTiles][kTokenTiles][4] = {};
  for (int base = begin; base < end; base += kAhead) {
#pragma unroll
    for (int d = 0; d < kAhead; ++d) {
      const int chunk = base + d;
      if (chunk < end) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          const int own = Weights::kPieces == 1 ? 0 : step;
          const int place = d % kChunksAhead * Weights::kPieces + own;
          const int next = chunk + kChunksAhead;
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            Word a[4];
            Weights::open(pieces[r][place], step, a);
            if ((Weights::kPieces > 1 || step == kSteps - 1) && next < end) {
              pieces[r][place] = weights.load(tile(r), next, own);
            }
#pragma unroll
            for (int t = 0; t < kTokenTiles; ++t) {
              const uint4 b = given[t][d % kTokensAhead].half[step / 2];
              multiply_add(sums[r][t], a, step % 2 ? b.z : b.x, step % 2 ? b.w : b.y);
            }
          }
        }
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          if (chunk + kTokensAhead < end) {
            given[t][d % kTokensAhead] = tokens(t, chunk + kTokensAhead);
          }
        }
      }
    }
  }

  // The slices' sums, in ascending order; neighbouring threads have neighbouring rows.
  constexpr int kTileSums = kRows * 8, kSums = kRowTiles * kTokenTiles * kTileSums;
  float* partial = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, token = lane % 4 * 2 + i % 2;
        const int at = (r * kTokenTiles + t) * kTileSums + token * kRows + row;
        partial[slice * kSums + at] = sums[r][t][i];
      }
    }
  }
  __syncthreads();
  auto total = [&](int r, int rest) {
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      sum += partial[s * kSums + r * kTokenTiles * kTileSums + rest];
    }
    return sum;
  };
  constexpr int kWidth = kGated ? kN / 2 : kN, kTileStep = kGated ? 2 : 1;
  constexpr int kOutputs = kSums / kTileStep;
  for (int i = threadIdx.x; i < kOutputs; i += kSlices * 32) {
    const int r = i / (kTokenTiles * kTileSums) * kTileStep, rest = i % (kTokenTiles * kTileSums);
    const int row = (blockIdx.x * (kRowTiles / kTileStep) + r / kTileStep) * kRows + rest % kRows;
    const int token = first_token + rest / kRows;
    if (row < kWidth && token < m) {
      const size_t at = size_t(token) * kWidth + row;
      float value = total(r, rest);
      if (kGated) value = gated(value, total(r + 1, rest));
      if (kResidual) value = static_cast<const float*>(residual)[at] + value;
      write(static_cast<Y*>(y) + at, value);
    }
  }
}

}  // namespace wherry
#endif
