// GEMV and small batches: weights are read once, at the speed of memory. A block has several row
// tiles of the weight, and a warp for each slice of K.
#ifndef WHERRY_GEMV_ROWS
#define WHERRY_GEMV_ROWS

namespace wherry {

struct Tokens {  // a lane's part of a chunk of eight tokens
  uint4 half[2];
};

// A warp's work on its slice of K: kRowTiles row tiles of the weight by kTokenTiles tiles of eight
// tokens. A lane has kAhead pieces of each row tile in flight: 4 or 8.
template <class Weights, int kRowTiles, int kTokenTiles, int kAhead>
struct Slice {
  using Tile = decltype(static_cast<const Weights*>(nullptr)->tile(0));
  static constexpr int kK = Weights::kChunks * kChunk;
  static constexpr int kChunksAhead = kAhead / Weights::kPieces;
  static constexpr int kStepsOfPiece = kSteps / Weights::kPieces;
  static constexpr int kTokensAhead = kTokenTiles >= 4 ? 1 : 4 / kTokenTiles;  // chunks
  int begin, end;                                                              // chunks
  Tile tiles[kRowTiles];
  Piece pieces[kRowTiles][kAhead];

  // Slice `slice`; the tiles are set later.
  __device__ __forceinline__ explicit Slice(int slice)
      : begin(first_chunk(kK, slice)), end(first_chunk(kK, slice + 1)) {}

  __device__ __forceinline__ void start() {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) tiles[r].advance(begin);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (begin + i / Weights::kPieces < end) {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          pieces[r][i] = tiles[r].load(i / Weights::kPieces, i % Weights::kPieces);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) tiles[r].advance(kChunksAhead);
  }

  // `rows`: addresses of the lane's part of each token, which are advanced, too.
  __device__ __forceinline__ void multiply(const uint4* (&rows)[kTokenTiles],
                                           float (&sums)[kRowTiles][kTokenTiles][4]) {
    auto tokens = [&](int t, int chunk) -> Tokens {
      return {rows[t][chunk * 8], rows[t][chunk * 8 + 1]};
    };
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) rows[t] += begin * 8;
    Tokens given[kTokenTiles][kTokensAhead];
#pragma unroll
    for (int i = 0; i < kTokensAhead; ++i) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
        if (begin + i < end) given[t][i] = tokens(t, i);
      }
    }
    for (int base = begin; base < end; base += kAhead) {
#pragma unroll
      for (int d = 0; d < kAhead; ++d) {
        const int chunk = base + d;
        if (chunk < end) {
#pragma unroll
          for (int step = 0; step < kSteps; ++step) {
            const int own = step / kStepsOfPiece;
            const int place = d % kChunksAhead * Weights::kPieces + own;
            const int next = chunk + kChunksAhead;
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
              Word32 a[4];
              Weights::open(pieces[r][place], step, a);
              if (step % kStepsOfPiece == kStepsOfPiece - 1 && next < end) {
                pieces[r][place] = tiles[r].load(d, own);  // chunk `next`
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
              given[t][d % kTokensAhead] = tokens(t, d + kTokensAhead);
            }
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) tiles[r].advance(kAhead);
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) rows[t] += kAhead * 8;
    }
  }
};

// sums += one chunk of the weight, of which `piece(r, p)` is a piece, times tokens.
template <class Weights, int kRowTiles, int kTokenTiles, class PieceOf>
__device__ __forceinline__ void multiply_chunk(PieceOf piece, const Tokens (&tokens)[kTokenTiles],
                                               float (&sums)[kRowTiles][kTokenTiles][4]) {
  constexpr int kStepsOfPiece = kSteps / Weights::kPieces;
  Piece pieces[kRowTiles][Weights::kPieces];
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int p = 0; p < Weights::kPieces; ++p) pieces[r][p] = piece(r, p);
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      Word32 a[4];
      Weights::open(pieces[r][step / kStepsOfPiece], step, a);
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
        const uint4 b = tokens[t].half[step / 2];
        multiply_add(sums[r][t], a, step % 2 ? b.z : b.x, step % 2 ? b.w : b.y);
      }
    }
  }
}

// The slices' sums in shared memory, which are added in ascending order; neighbouring threads have
// neighbouring rows. Of a tile of tokens the first kKept are there.
template <int kSlices, int kRowTiles, int kTokenTiles, int kKept = 8>
struct Partials {
  static constexpr int kTileSums = kRows * kKept, kSums = kRowTiles * kTokenTiles * kTileSums;
  float* memory;

  __device__ __forceinline__ void keep(int slice, int lane,
                                       const float (&sums)[kRowTiles][kTokenTiles][4]) const {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = lane / 4 + i / 2 * 8, token = lane % 4 * 2 + i % 2;
          const int at = (r * kTokenTiles + t) * kTileSums + token * kRows + row;
          if (kKept == 8 || token < kKept) memory[slice * kSums + at] = sums[r][t][i];
        }
      }
    }
  }

  __device__ __forceinline__ float total(int r, int rest) const {
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      sum += memory[s * kSums + r * kTokenTiles * kTileSums + rest];
    }
    return sum;
  }

  // Calls `put(column of the block, token of the block, sum, the up projection's sum)` once for
  // each.
  template <bool kGated, class Put>
  __device__ __forceinline__ void each(Put put) const {
    constexpr int kTileStep = kGated ? 2 : 1;
    for (int i = threadIdx.x; i < kSums / kTileStep; i += kSlices * 32) {
      const int r = i / (kTokenTiles * kTileSums) * kTileStep, rest = i % (kTokenTiles * kTileSums);
      const int column = r / kTileStep * kRows + rest % kRows;
      put(column, rest / kRows, [&] { return total(r, rest); }, [&] { return total(r + 1, rest); });
    }
  }
};

// x float16 [m, K], y float32 or float16 [m, N, or N / 2 if gated], residual as y. With kNormed, x
// float32 [K], which every block normalises while loads of its weights are in flight. The grid is
// (row tiles / kRowTiles, tokens / (8 kTokenTiles)); shared memory is kSlices * kRowTiles *
// kTokenTiles * 512 bytes, with kNormed 2 K more.
template <template <int, int> class Stored, int kN, int kK, int kRowTiles, int kTokenTiles,
          int kAhead, bool kNormed, bool kGated, bool kResidual, class Y>
__device__ __forceinline__ void gemv(const void* x, const void* norm, const void* packed,
                                     const void* residual, void* y, unsigned char* shared, int m,
                                     float eps) {
  using Weights = Stored<kN, kK>;
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int first_token = blockIdx.y * (8 * kTokenTiles);
  const Weights weights(packed, lane);
  Slice<Weights, kRowTiles, kTokenTiles, kAhead> own(slice);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    own.tiles[r] = weights.tile(row_tile<kN, kRowTiles, kGated>(blockIdx.x, r));
  }
  own.start();
  let_next_begin();
  wait_for_inputs();
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
  float sums[kRowTiles][kTokenTiles][4] = {};
  own.multiply(rows, sums);

  const Partials<slices(kK), kRowTiles, kTokenTiles> partials{reinterpret_cast<float*>(shared)};
  partials.keep(slice, lane, sums);
  __syncthreads();
  constexpr int kWidth = kGated ? kN / 2 : kN, kColumns = kRowTiles / (kGated ? 2 : 1) * kRows;
  partials.template each<kGated>([&](int of_block, int of_tile, auto sum, auto up) {
    const int column = blockIdx.x * kColumns + of_block, token = first_token + of_tile;
    if (column < kWidth && token < m) {
      const size_t at = size_t(token) * kWidth + column;
      float value = sum() * Weights::factor(packed, column);
      if (kGated) value = gated(value, up() * Weights::factor(packed, kWidth + column));
      if (kResidual) value = static_cast<const float*>(residual)[at] + value;
      write(static_cast<Y*>(y) + at, value);
    }
  });
}

}  // namespace wherry
#endif
