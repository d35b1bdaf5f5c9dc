// Experts with few, unsorted slots: a block has one slot, or (kCombined) all slots of a row in
// turn, and adds their results.
#ifndef WHERRY_EXPERT_ROW
#define WHERRY_EXPERT_ROW

namespace wherry {

// A warp's position in its chunks of kTurns slots, which it visits in turn.
template <class E>
struct Turns {
  const int* ids;  // of the block's slots
  int first_slot;  // of the block
  int begin, end;  // chunks of a slot
  int turn, chunk, tile;

  __device__ __forceinline__ int expert(int turn) const {
    return E::kRouted ? ids[first_slot + turn] : (first_slot + turn) % E::kExperts;
  }
  __device__ __forceinline__ void first() { turn = 0, chunk = begin, tile = expert(0) * E::kTiles; }
  __device__ __forceinline__ void next(int turns) {
    if (++chunk < end) return;
    chunk = begin;
    if (++turn < turns) tile = expert(turn) * E::kTiles;
  }
};

// x float32 or float16, ids int32 [n, K], shares float32 [n, K], residual float32 [n, width] if
// kResidual, y [slots, width], or of kCombined [n, width]. A lane has kAhead pieces of each row
// tile in flight, including pieces of the next slot. The grid is (row tiles of an expert /
// kRowTiles, slots or rows). Shared memory has the rows of x as float16, 2 kK bytes each, and the
// slices' sums: kTurns * kSlices * kRowTiles * 64 bytes.
template <class E, int kRowTiles, int kAhead, bool kCombined, bool kResidual, class X, class Y>
__device__ __forceinline__ void expert_row(const void* x, const void* ids, const void* shares,
                                           const void* bias, const void* packed,
                                           const void* residual, void* y, unsigned char* shared,
                                           float alpha, float limit) {
  using Weights = typename E::Weights;
  constexpr int kTurns = kCombined ? E::kTopK : 1, kSlices = slices(E::kK);
  constexpr int kChunksAhead = kAhead / Weights::kPieces, kStepsOfPiece = kSteps / Weights::kPieces;
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int begin = first_chunk(E::kK, slice), end = first_chunk(E::kK, slice + 1);
  const int first_slot = blockIdx.y * kTurns, count = (end - begin) * kTurns;
  const Weights weights(packed, lane);

  Turns<E> ahead{static_cast<const int*>(ids), first_slot, begin, end, 0, 0, 0};
  ahead.first();
  auto load = [&](int r, int piece) {
    const int tile = ahead.tile + row_tile<E::kN, kRowTiles, E::kGated>(blockIdx.x, r);
    return weights.load(tile, ahead.chunk, piece);
  };
  Piece pieces[kRowTiles][kAhead];
#pragma unroll
  for (int i = 0; i < kChunksAhead; ++i) {
    if (i < count) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int p = 0; p < Weights::kPieces; ++p) {
          pieces[r][i * Weights::kPieces + p] = load(r, p);
        }
      }
      ahead.next(kTurns);
    }
  }

  Half* z = reinterpret_cast<Half*>(shared);
  const X* from =
      static_cast<const X*>(x) + size_t(E::kShared ? first_slot / E::kTopK : first_slot) * E::kK;
  for (int k = threadIdx.x; k < kTurns * E::kK; k += kSlices * 32) {
    z[k] = kept_half(read(from + k));
  }
  float* partial = reinterpret_cast<float*>(shared + kTurns * E::kK * 2);
  __syncthreads();

  // The tile of eight tokens repeats one token.
  const uint4* row = reinterpret_cast<const uint4*>(z) + lane % 4 * 2;
  float sums[kRowTiles][4] = {};
  int turn = 0, chunk = begin;
  for (int base = 0; base < count; base += kChunksAhead) {
#pragma unroll
    for (int d = 0; d < kChunksAhead; ++d) {
      if (base + d < count) {
        const uint4* own_row = row + turn * (E::kK / 8) + chunk * 8;
        const Tokens b = {own_row[0], own_row[1]};
        const bool more = base + d + kChunksAhead < count;
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          const int own = step / kStepsOfPiece, place = d * Weights::kPieces + own;
          const uint4 half = b.half[step / 2];
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            Word32 a[4];
            Weights::open(pieces[r][place], step, a);
            if (step % kStepsOfPiece == kStepsOfPiece - 1 && more) pieces[r][place] = load(r, own);
            multiply_add(sums[r], a, step % 2 ? half.z : half.x, step % 2 ? half.w : half.y);
          }
        }
        if (more) ahead.next(kTurns);
        if (++chunk == end) {
          chunk = begin;
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
            float* to = partial + ((turn * kSlices + slice) * kRowTiles + r) * kRows + lane / 4;
            if (lane % 4 == 0) to[0] = sums[r][0], to[8] = sums[r][2];
            sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = 0.0f;
          }
          ++turn;
        }
      }
    }
  }
  __syncthreads();

  constexpr int kTileStep = E::kGated ? 2 : 1, kColumns = kRowTiles / kTileStep * kRows;
  const int column = blockIdx.x * kColumns + threadIdx.x;
  if (threadIdx.x >= kColumns || column >= E::kWidth) return;
  auto total = [&](int turn, int r) {
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      sum += partial[((turn * kSlices + s) * kRowTiles + r) * kRows + threadIdx.x % kRows];
    }
    return sum;
  };
  const size_t at = size_t(blockIdx.y) * E::kWidth + column;
  float value = kResidual ? static_cast<const float*>(residual)[at] : 0.0f;
  const int r = threadIdx.x / kRows * kTileStep;
  const float* of_slots = static_cast<const float*>(shares) + first_slot;
  for (int turn = 0; turn < kTurns; ++turn) {
    const float up = E::kGated ? total(turn, r + 1) : 0.0f;
    const float own =
        E::result(packed, bias, ahead.expert(turn), column, total(turn, r), up, {alpha, limit});
    value = kCombined ? fmaf(of_slots[turn], own, value) : own;
  }
  write(static_cast<Y*>(y) + at, value);
}

}  // namespace wherry
#endif
