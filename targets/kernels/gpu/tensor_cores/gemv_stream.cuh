// GEMV of weights of few bits: blocks walk over row tiles, and weights arrive in shared memory by
// asynchronous copies, which continue while a row tile is summed up and written.
//
// Loads into registers would wait for each other: the assembler counts loads in flight in six
// counters of a warp and waits until one is zero, so with one counter for all loads of a loop each
// chunk would wait for the newest load. Groups of copies complete in order, and a warp waits for
// all but the newest.
#ifndef WHERRY_GEMV_STREAM
#define WHERRY_GEMV_STREAM

namespace wherry {

// The copies of a warp: kStages units of kUnit chunks of each of kRowTiles row tiles, one of which
// is read while the others are in flight. Groups of row tiles are those of blockIdx.x, blockIdx.x +
// kBlocks, and so on; a warp has its slice of each.
template <class Weights, int kRowTiles, int kUnit, int kStages>
struct Units {
  static constexpr int kK = Weights::kChunks * kChunk, kSlices = slices(kK);
  static constexpr int kWordsOfTile = kUnit * Weights::kPieces * 32;  // uint4
  static constexpr int kScalesOfTile = kUnit * Weights::kScales / 4;  // uint4
  static constexpr int kScalesAt = kRowTiles * kWordsOfTile;          // uint4
  static constexpr int kScaleCopies = kRowTiles * kScalesOfTile;      // one a lane
  static constexpr int kOffsetCopies = Weights::kOffsetsAt == 0 ? 0 : kScaleCopies;
  static constexpr int kSlot = kScalesAt + kScaleCopies + kOffsetCopies;  // uint4
  static constexpr int kBytes = kStages * kSlot * 16;                     // of a warp
  // Whether all slices have the same number of chunks, and all units kUnit of them.
  static constexpr bool kEven = Weights::kChunks % (kSlices * kUnit) == 0;
  static_assert(kScaleCopies <= 32 && kStages >= 2, "a lane copies scales once a unit");

  uint4* memory;  // of the warp
  int lane, begin, end;
  int slot;  // that is read next, in uint4 from `memory`
  // What is copied next:
  int group, chunk;
  const uint4* words[kRowTiles];
  const uint4* scales;

  __device__ __forceinline__ Units(unsigned char* shared, int slice, int own_lane)
      : memory(reinterpret_cast<uint4*>(shared + slice * kBytes)),
        lane(own_lane),
        begin(first_chunk(kK, slice)),
        end(kEven ? begin + Weights::kChunks / kSlices : first_chunk(kK, slice + 1)),
        slot(0) {}

  // Whether chunk `i` of a unit from chunk `first` on exists.
  __device__ __forceinline__ bool has(int first, int i) const {
    return i == 0 || kEven || first + i < end;
  }

  // `tile_of(group, r)` is the index of a row tile.
  template <class TileOf>
  __device__ __forceinline__ void begin_group(const Weights& weights, TileOf tile_of) {
    chunk = begin;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      words[r] = weights.tile(tile_of(group, r)).words + begin * (Weights::kPieces * 32);
    }
    if (Weights::kScales > 0) {
      const int r = lane < kScaleCopies ? lane / kScalesOfTile : 0;
      scales = weights.all_scales(tile_of(group, r)) + begin * (Weights::kScales / 4) +
               lane % smaller(32, kScalesOfTile + (kScalesOfTile == 0));
    }
  }

  // Starts the copies of the next unit, if there is one, to `to`; they are one batch.
  template <int kGroups, int kBlocks, class TileOf>
  __device__ __forceinline__ void copy(uint4* to, const Weights& weights, TileOf tile_of) {
    if (group < kGroups) {
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
        if (has(chunk, i)) {
#pragma unroll
          for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
            for (int p = 0; p < Weights::kPieces; ++p) {
              const int at = (i * Weights::kPieces + p) * 32;
              start_copy(to + r * kWordsOfTile + at + lane, words[r] + at);
            }
          }
        }
      }
      const int of_tile = lane % smaller(32, kScalesOfTile + (kScalesOfTile == 0));
      if (lane < kScaleCopies && has(chunk, of_tile / (Weights::kScales == 0 ? 1 : Weights::kScales / 4))) {
        start_copy(to + kScalesAt + lane, scales);
        if (kOffsetCopies > 0) {
          start_copy(to + kScalesAt + kScaleCopies + lane, scales + Weights::kOffsetsAt / 4);
        }
      }
      chunk += kUnit;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) words[r] += kWordsOfTile;
      scales += kScalesOfTile;
      if (chunk >= end) {
        group += kBlocks;
        begin_group(weights, tile_of);
      }
    }
    end_batch_of_copies();
  }

  // The piece of row tile `r` and chunk `i` of the unit at `from`.
  __device__ __forceinline__ Piece piece(const uint4* from, int r, int i, int p) const {
    const Word32* own = reinterpret_cast<const Word32*>(from + kScalesAt) +
                      (r * kUnit + i) * Weights::kScales + Weights::of_lane(lane);
    return {from[r * kWordsOfTile + (i * Weights::kPieces + p) * 32 + lane],
            Weights::kScales == 0 ? 0 : own[0], kOffsetCopies == 0 ? 0 : own[kScaleCopies * 4]};
  }
};

// The sums of the slices, in two places in turn: one barrier a group of row tiles is enough,
// because a warp that writes a place again has passed the barrier of the other one, and all threads
// read the place before that.
template <class Weights, int kRowTiles, int kTokenTiles, int kUnit, int kStages, bool kOneRow>
struct StreamMemory {
  using Warp = Units<Weights, kRowTiles, kUnit, kStages>;
  using Sums = Partials<Warp::kSlices, kRowTiles, kTokenTiles, kOneRow ? 1 : 8>;
  static constexpr int kSums = Warp::kSlices * Sums::kSums;  // floats
  static constexpr int kUnitBytes = Warp::kSlices * Warp::kBytes;
  static constexpr int kBytes = kUnitBytes + 2 * kSums * 4 + (kOneRow ? Warp::kK * 2 : 0);
};

// As `gemv`, with kBlocks blocks in axis x of the grid. Shared memory has `StreamMemory::kBytes`.
template <template <int, int> class Stored, int kN, int kK, int kRowTiles, int kTokenTiles,
          int kUnit, int kStages, int kBlocks, bool kNormed, bool kGated, bool kResidual, class Y>
__device__ __forceinline__ void gemv_stream(const void* x, const void* norm, const void* packed,
                                            const void* residual, void* y, unsigned char* shared,
                                            int m, float eps) {
  using Weights = Stored<kN, kK>;
  using Memory = StreamMemory<Weights, kRowTiles, kTokenTiles, kUnit, kStages, kNormed>;
  using Sums = typename Memory::Sums;
  constexpr int kThreads = slices(kK) * 32, kGroups = divided_up(Weights::kTiles, kRowTiles);
  constexpr int kTileStep = kGated ? 2 : 1, kColumns = kRowTiles / kTileStep * kRows;
  constexpr int kWidth = kGated ? kN / 2 : kN;
  constexpr int kOutputs = divided_up(Sums::kSums / kTileStep, kThreads);  // of a thread
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int first_token = blockIdx.y * (8 * kTokenTiles);
  const Weights weights(packed, lane);
  auto tile_of = [](int group, int r) { return row_tile<kN, kRowTiles, kGated>(group, r); };

  typename Memory::Warp own(shared, slice, lane);
  shared += Memory::kUnitBytes;
  own.group = blockIdx.x;
  own.begin_group(weights, tile_of);
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    own.template copy<kGroups, kBlocks>(own.memory + i * Memory::Warp::kSlot, weights, tile_of);
  }
  let_next_begin();
  wait_for_inputs();
  float* partials = reinterpret_cast<float*>(shared);
  shared += 2 * Memory::kSums * 4;
  if (kNormed) {
    prepare_row<kK, true, float>(x, norm, shared, reinterpret_cast<unsigned char*>(partials), eps);
    __syncthreads();
    x = shared;
  }
  const uint4* rows[kTokenTiles];
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
    const int token = kNormed ? 0 : min(first_token + t * 8 + lane / 4, m - 1);
    rows[t] =
        static_cast<const uint4*>(x) + size_t(token) * (kK / 8) + lane % 4 * 2 + own.begin * 8;
  }

  int place = 0;  // of the sums, in floats
  uint4* free = own.memory + (kStages - 1) * Memory::Warp::kSlot;
  for (int group = blockIdx.x; group < kGroups; group += kBlocks) {
    // Where the thread's results are, and the residual and the factors there, which arrive meanwhile.
    size_t at[kOutputs];
    bool there[kOutputs];
    float before[kOutputs], factor[kOutputs], of_up[kOutputs];
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const int output = threadIdx.x + i * kThreads,
                rest = output % (kTokenTiles * Sums::kTileSums);
      const int column =
          group * kColumns + output / (kTokenTiles * Sums::kTileSums) * kRows + rest % kRows;
      const int token = first_token + rest / kRows;
      there[i] = output < Sums::kSums / kTileStep && column < kWidth && token < m;
      at[i] = size_t(token) * kWidth + column;
      factor[i] = of_up[i] = 1.0f;
      if (there[i]) {
        factor[i] = Weights::factor(packed, column);
        if (kGated) of_up[i] = Weights::factor(packed, kWidth + column);
      }
      before[i] = kResidual && there[i] ? static_cast<const float*>(residual)[at[i]] : 0.0f;
    }

    float sums[kRowTiles][kTokenTiles][4] = {};
    const uint4* given[kTokenTiles];
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) given[t] = rows[t];
#pragma unroll 1
    for (int chunk = own.begin; chunk < own.end; chunk += kUnit) {
      Tokens tokens[kUnit][kTokenTiles];
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          if (own.has(chunk, i)) tokens[i][t] = {given[t][i * 8], given[t][i * 8 + 1]};
        }
      }
      wait_for_copies<kStages - 2>();
      sync_warp();  // other lanes have copied scales, and have read what is in `free`
      own.template copy<kGroups, kBlocks>(free, weights, tile_of);
      free = own.memory + own.slot;
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
        if (own.has(chunk, i)) {
          multiply_chunk<Weights>([&](int r, int p) { return own.piece(free, r, i, p); }, tokens[i],
                                  sums);
        }
      }
      own.slot += Memory::Warp::kSlot;
      if (own.slot == kStages * Memory::Warp::kSlot) own.slot = 0;
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) given[t] += kUnit * 8;
    }

    const Sums own_sums{partials + place};
    place = Memory::kSums - place;
    own_sums.keep(slice, lane, sums);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      if (there[i]) {
        const int output = threadIdx.x + i * kThreads;
        const int r = output / (kTokenTiles * Sums::kTileSums) * kTileStep;
        const int rest = output % (kTokenTiles * Sums::kTileSums);
        float value = own_sums.total(r, rest) * factor[i];
        if (kGated) value = gated(value, own_sums.total(r + 1, rest) * of_up[i]);
        if (kResidual) value = before[i] + value;
        write(static_cast<Y*>(y) + at[i], value);
      }
    }
  }
}

}  // namespace wherry
#endif
