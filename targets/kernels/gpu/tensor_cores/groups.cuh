// GEMM by warpgroups, for prompts: one warpgroup copies chunks of tokens and weights into shared
// memory, and two others multiply them. Sums have the order of `gemm.cuh`, and the same bits: wgmma
// and mma of sm_90 add sixteen products in the same way.
#ifndef WHERRY_GROUPS
#define WHERRY_GROUPS

namespace wherry {

constexpr int kGroupTokens = 128;   // of a block
constexpr int kGroupWarps = 8;      // that multiply, a row tile of the weight each
constexpr int kCopyThreads = 128;

#ifndef WHERRY_GROUPS_MULTIPLY
// On GPUs without wgmma a warp multiplies for itself.
template <int kCount>
__device__ __forceinline__ void give_registers() {}
template <int kCount>
__device__ __forceinline__ void take_registers() {}
__device__ __forceinline__ void begin_batch() {}
__device__ __forceinline__ void end_batch() {}
template <int kBatches>
__device__ __forceinline__ void wait_for_batches() {}
__device__ __forceinline__ void multiply_tokens(float (&sums)[16][4], const Word32 (&a)[4],
                                                const void* chunk, int step, bool add) {
  const int lane = threadIdx.x % 32, token = lane / 4;
  const Word32* words = static_cast<const Word32*>(chunk);
#pragma unroll
  for (int t = 0; t < kGroupTokens / 8; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[t][i] = add ? sums[t][i] : 0.0f;
    const Word32* own = words + (t * 8 + token) * 32 + lane % 4;
    multiply_add(sums[t], a, own[(step * 2 ^ token) * 4], own[((step * 2 + 1) ^ token) * 4]);
  }
}
#endif

// Rows of x in the order in which blocks copy them: [tiles of kGroupTokens, chunks, tokens of the
// tile, 64], the last tile perhaps with fewer tokens. Unit u of a token's chunk has words 2 u of the
// lanes' columns, see layout.py, and is at u ^ token % 8.
template <int kK, bool kNormed, class X>
__device__ __forceinline__ void prepare_tiles(const void* x, const void* norm, void* tiles,
                                              unsigned char* shared, int m, float eps) {
  const int row = blockIdx.x, tile = row / kGroupTokens, token = row % kGroupTokens;
  const int tokens = min(kGroupTokens, m - tile * kGroupTokens);
  const X* from = static_cast<const X*>(x) + size_t(row) * kK;
  uint4* to = static_cast<uint4*>(tiles) + size_t(tile) * kGroupTokens * (kK / 8);
  const float inverse = kNormed ? inverse_size<kK>(from, shared, eps) : 1.0f;
  for (int i = threadIdx.x; i < kK / 8; i += kPrepareThreads) {
    const int chunk = i / 8, unit = i % 8;
    Word32 words[4];
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int k = chunk * kChunk + place * 16 + unit * 2;
      words[place] = prepared<kNormed>(from, norm, inverse, k).bits |
                     Word32{prepared<kNormed>(from, norm, inverse, k + 1).bits} << 16;
    }
    to[(size_t(chunk) * tokens + token) * 8 + (unit ^ token % 8)] = {words[0], words[1], words[2],
                                                                      words[3]};
  }
}

// A stage of shared memory: a chunk of tokens, then of each warp's row tile words, scales, offsets.
template <class Weights>
struct Stage {
  static constexpr int kTokens = kGroupTokens * kChunk * 2;
  static constexpr int kWords = Weights::kPieces * 512, kScales = Weights::kScales * 4;
  static constexpr int kTile = kWords + kScales * (Weights::kOffsetsAt ? 2 : 1);
  static constexpr int kSize = kTokens + (kGroupWarps * kTile + 1023) / 1024 * 1024;
};

// Which row tile warp `warp` of block row `block` has. With a gate, of the four warps of a group two
// have tiles of the gate, and two those of the up projection.
template <int kN, bool kGated>
struct GroupTile {
  int column_tile, index;

  __device__ __forceinline__ GroupTile(int block, int warp) {
    constexpr int kTiles = divided_up(kN, kRows), kOfGate = kN / 2 / kRows;
    column_tile = kGated ? block * 4 + warp / 4 * 2 + warp % 2 : block * kGroupWarps + warp;
    index = kGated ? min(column_tile, kOfGate - 1) + warp % 4 / 2 * kOfGate
                   : min(column_tile, kTiles - 1);
  }
};

template <class Weights, int kN, int kK, int kStages, bool kGated>
struct GroupCopies {  // of the warpgroup that copies
  using Of = Stage<Weights>;
  static constexpr int kUnits = Of::kTile / 16;  // of a row tile's chunk, 16 bytes each
  static constexpr int kAll = kGroupWarps * kUnits, kCount = divided_up(kAll, kCopyThreads);
  static constexpr size_t kScalesAt = size_t{Weights::kTiles} * Weights::kChunks * Of::kWords;
  static_assert(kScalesAt < (size_t{3} << 30), "offsets are 32 bits");

  static __device__ __forceinline__ void run(const unsigned char* tokens, const void* packed,
                                             int block, int count, unsigned char* stages,
                                             Barrier* barriers) {
    const int thread = threadIdx.x % kCopyThreads;
    Word32 at[kCount];  // bytes from `packed` on
    int step[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int unit = min(thread + i * kCopyThreads, kAll - 1);
      const Word32 first = GroupTile<kN, kGated>(block, unit / kUnits).index * Weights::kChunks;
      const int place = unit % kUnits * 16, of_scales = place - Of::kWords;
      at[i] = first * Of::kWords + place;
      step[i] = Of::kWords;
      if (of_scales >= 0) {
        at[i] = static_cast<Word32>(kScalesAt) + first * Of::kScales +
                of_scales % (Of::kScales ? Of::kScales : 16);
        step[i] = Of::kScales;
        if (of_scales >= Of::kScales) at[i] += static_cast<Word32>(Weights::kOffsetsAt * 4);
      }
    }
    for (int chunk = 0; chunk < Weights::kChunks; ++chunk) {
      const int stage = chunk % kStages;
      Barrier* full = barriers + stage * 2;
      unsigned char* to = stages + stage * Of::kSize;
      if (chunk >= kStages) wait_for(full + 1, (chunk / kStages - 1) % 2);
      if (thread == 0) {
        arrive_and_expect(full, count * (kChunk * 2));
        copy_in_bulk(to, tokens + size_t(chunk) * count * (kChunk * 2), count * (kChunk * 2), full);
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int unit = thread + i * kCopyThreads;
        if (kAll % kCopyThreads == 0 || unit < kAll) {
          start_copy(to + Of::kTokens + unit * 16, static_cast<const unsigned char*>(packed) + at[i]);
        }
        at[i] += step[i];
      }
      arrive_after_copies(full);
    }
    end_batch_of_copies();
    wait_for_copies<0>();
  }
};

// x as by `prepare_tiles`, y float32 or float16 [m, N, or N / 2 if gated], residual as y. The grid is
// (tiles of a patch, patches * blocks across), as in `gemm`, with three warpgroups. Shared memory is
// 1,024 bytes for alignment, the stages, and two barriers each.
template <template <int, int> class Stored, int kN, int kK, int kStages, int kPatch, bool kGated,
          bool kResidual, class Y>
__device__ __forceinline__ void gemm_groups(const void* x, const void* packed, const void* residual,
                                            void* y, unsigned char* shared, int m) {
  using Weights = Stored<kN, kK>;
  using Of = Stage<Weights>;
  constexpr int kChunks = Weights::kChunks, kStepsOfPiece = kSteps / Weights::kPieces;
  constexpr int kTokenTiles = kGroupTokens / 8;
  constexpr int kAcross = divided_up(Weights::kTiles, kGroupWarps);
  const int block = blockIdx.y % kAcross;
  const int first_token = (blockIdx.y / kAcross * kPatch + blockIdx.x) * kGroupTokens;
  if (first_token >= m) return;  // padding of the last patch
  unsigned char* stages = shared + (1024 - shared_address(shared) % 1024) % 1024;
  Barrier* barriers = reinterpret_cast<Barrier*>(stages + kStages * Of::kSize);  // full, empty
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      start_barrier(barriers + i * 2, 1 + kCopyThreads);
      start_barrier(barriers + i * 2 + 1, kGroupWarps);
    }
    show_barriers();
  }
  __syncthreads();
  if (warp >= kGroupWarps) {
    give_registers<40>();
    GroupCopies<Weights, kN, kK, kStages, kGated>::run(
        static_cast<const unsigned char*>(x) + size_t(first_token) * kK * 2, packed, block,
        min(kGroupTokens, m - first_token), stages, barriers);
    return;
  }
  take_registers<232>();
  const unsigned char* own = stages + Of::kTokens + warp * Of::kTile;
  auto open = [&](int stage, Word32 (&into)[kSteps][4]) {
    const unsigned char* at = own + stage * Of::kSize;
    Piece pieces[Weights::kPieces];
#pragma unroll
    for (int i = 0; i < Weights::kPieces; ++i) {
      const Word32* scales = reinterpret_cast<const Word32*>(at + Of::kWords) + Weights::of_lane(lane);
      pieces[i] = {reinterpret_cast<const uint4*>(at)[i * 32 + lane],
                   Weights::kScales ? scales[0] : 0,
                   Weights::kOffsetsAt ? scales[Weights::kScales] : 0};
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Weights::open(pieces[step / kStepsOfPiece], step, into[step]);
    }
  };
  auto release = [&](int stage) {
    if (lane == 0) arrive(barriers + stage * 2 + 1);
  };
  float sums[kTokenTiles][4], totals[kTokenTiles][4];
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[t][i] = 0.0f, totals[t][i] = 0.0f;
  }
  int stage = 0, before = 0, slice = 1, end = first_chunk(kK, 1);
  Word32 parity = 0;
  bool add = false;
  // The multiplications of a chunk run while the next chunk's weights are opened.
  auto multiply = [&](int chunk, Word32 (&a)[kSteps][4]) {
    wait_for(barriers + stage * 2, parity);
    open(stage, a);
    begin_batch();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      multiply_tokens(sums, a[step], stages + stage * Of::kSize, step, step > 0 || add);
    }
    end_batch();
    if (add) {
      wait_for_batches<1>();
      release(before);
    }
    before = stage;
    if (++stage == kStages) stage = 0, parity ^= 1;
    add = true;
    if (chunk + 1 == end) {
      wait_for_batches<0>();
      release(before);
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) totals[t][i] += sums[t][i];
      }
      end = first_chunk(kK, ++slice);
      add = false;
    }
  };
  Word32 a[kSteps][4], b[kSteps][4];
  for (int chunk = 0; chunk < kChunks; chunk += 2) {
    multiply(chunk, a);
    if (chunk + 1 < kChunks) multiply(chunk + 1, b);
  }

  constexpr int kWidth = kGated ? kN / 2 : kN;
  const int first_row = GroupTile<kN, kGated>(block, warp).index * kRows + lane / 4;
  const float factors[2] = {Weights::factor(packed, first_row),
                            Weights::factor(packed, first_row + 8)};
  // sums of the up projection, [two warps of each group, kTokenTiles, 4, lanes]
  float* up = reinterpret_cast<float*>(stages) + (warp / 4 * 2 + warp % 2) * (kTokenTiles * 128) + lane;
  if (kGated) {
    sync_some<kGroupWarps * 32>();  // no warp reads the stages
    if (warp % 4 >= 2) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) up[(t * 4 + i) * 32] = totals[t][i] * factors[i / 2];
      }
    }
    sync_some<kGroupWarps * 32>();
    if (warp % 4 >= 2) return;
  }
  const int first_column = GroupTile<kN, kGated>(block, warp).column_tile * kRows + lane / 4;
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = first_token + t * 8 + lane % 4 * 2 + i % 2, column = first_column + i / 2 * 8;
      if (column < kWidth && token < m) {
        const size_t at = size_t(token) * kWidth + column;
        float value = totals[t][i] * factors[i / 2];
        if (kGated) value = gated(value, up[(t * 4 + i) * 32]);
        if (kResidual) value = static_cast<const float*>(residual)[at] + value;
        write(static_cast<Y*>(y) + at, value);
      }
    }
  }
}

}  // namespace wherry
#endif
