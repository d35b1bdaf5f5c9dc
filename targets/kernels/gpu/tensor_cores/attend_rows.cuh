// Attention of rows of sequences that have several in a step: a block has a tile of rows, with all
// query heads of a key-value head, and goes with them through the sequence's keys and values.
#ifndef WHERRY_ATTEND_ROWS
#define WHERRY_ATTEND_ROWS

namespace wherry {

constexpr int kRowWarps = 4;
constexpr int kTileQueries = kRowWarps * kQueries;

// Keys and values of a block of tokens in shared memory. Eight lanes at a time read units of 16
// bytes: of keys four units of two tokens, of values two units of four, all from other banks. So
// unit u of token t lies at u ^ t % 2 * 4, at u ^ t % 8 / 2 * 2. What is the same for all pages,
// and all eight tokens, is computed once.
template <int kDim>
struct SharedTokens {
  static constexpr int kUnits = kDim / 8;
  static constexpr int kSize = kBlockTokens * kUnits;
  static constexpr int kThreads = kRowWarps * 32;
  static constexpr int kCopies = kSize / kThreads;   // of a thread
  static constexpr int kStride = kThreads / kUnits;  // tokens from one to the next
  static_assert(kStride == 8 || kStride == 16, "places repeat after eight tokens");
  const uint4* keys[2];  // of even and odd chunks
  const uint4* values;
  uint4* to[2];     // of the first copy of keys, of values
  int token, unit;  // of the first copy

  __device__ __forceinline__ explicit SharedTokens(uint4* memory)
      : token(threadIdx.x / kUnits), unit(threadIdx.x % kUnits) {
    const int group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    keys[0] = memory + group * kUnits + place + group % 2 * 4;
    keys[1] = memory + group * kUnits + place + 4 - group % 2 * 4;
    values = memory + kSize + place * 2 * kUnits + (group ^ place * 2);
    to[0] = memory + token * kUnits + (unit ^ token % 2 * 4);
    to[1] = memory + kSize + token * kUnits + (unit ^ token % 8 / 2 * 2);
  }
  __device__ __forceinline__ uint4 key(int page, int half, int chunk) const {
    return keys[chunk % 2][(page * 2 + half) * 8 * kUnits + chunk / 2 * 8];
  }
  __device__ __forceinline__ uint4 value(int page, int i, int part) const {
    return values[(page * kPageTokens + i / 2 * 8 + i % 2) * kUnits + part * 8];
  }
};

// What a thread keeps of the splits before: once in 256 tokens it is folded into. In registers
// there is no room for it.
template <int kDim>
struct Kept {
  static constexpr int kThreads = kRowWarps * 32;
  float* sums;  // [kDim / 8, 4, threads]
  float totals[2], largest[2];

  __device__ __forceinline__ float& sum(int n, int i) const {
    return sums[(n * 4 + i) * kThreads + threadIdx.x];
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum(n, i) = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) totals[i] = 0.0f, largest[i] = kLowest;
  }
};

// One head of keys and values, and the query heads that share it, of consecutive rows of a
// sequence. table int32: see batch_table.py.
template <int kHeads, int kKvHeads, int kDim, int kPlanes, bool kCapped, class Y>
struct RowsTile {
  static constexpr int kGroup = kHeads / kKvHeads, kRowsOfTile = kTileQueries / kGroup;
  static constexpr int kUnits = kDim / 8, kThreads = kRowWarps * 32;
  using Shared = SharedTokens<kDim>;

  const uint4* q;  // float16 [n, kHeads, kDim]
  Y* out;          // the same
  Pages<kKvHeads, kDim, kPlanes> pages;
  Shared shared;
  float* kept;  // what `Kept` has
  Scoring scoring;
  int window;

  __device__ __forceinline__ size_t place(int row, int query) const {
    return (size_t(row) * kHeads + pages.kv_head * kGroup + query % kGroup) * kDim;
  }

  // Rows `first` up to `stop` of the tile that begins with `tile_row`; the first is at `position`.
  __device__ __forceinline__ void run(int tile_row, int first, int stop, int position) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int begin = max(position + 1 - window, 0), end = position + stop - first;
    Seen seen;
    int rows[2];
    Queries<kDim> queries;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int query = warp * kQueries + lane / 4 + i * 8, row = query / kGroup;
      const bool inside = row >= first && row < stop;
      rows[i] = inside ? row : -1;
      seen.end[i] = inside ? position + row - first + 1 : 0;
      seen.begin[i] = max(seen.end[i] - window, 0);
      queries.load(i, q + place(tile_row + (inside ? row : first), query) / 8);
    }
    // Of all queries of the warp.
    const int top = max(warp * kQueries / kGroup, first);
    const int bottom = min((warp * kQueries + kQueries - 1) / kGroup, stop - 1);
    const int warp_begin = max(position + top - first + 1 - window, 0);
    const int warp_end = top <= bottom ? position + bottom - first + 1 : 0;

    State<kDim> split;
    Kept<kDim> whole{kept, {}, {}};
    split.clear();
    whole.clear();
    __syncthreads();  // nobody reads what the rows before had
    start_keys(begin / kBlockTokens, begin, end);
    for (int block = begin / kBlockTokens; block * kBlockTokens < end; ++block) {
      const int token = block * kBlockTokens;
      const bool some = token < warp_end && token + kBlockTokens > warp_begin;
      wait_for_copies<0>();
      __syncthreads();  // keys are here, and nobody reads values
      start_values(block, begin, end);
      BlockWeights weights;
      if (some) {
        weights = block_weights<kDim, kCapped>(queries, shared, token, seen, scoring);
      }
      wait_for_copies<0>();
      __syncthreads();  // values are here, and nobody reads keys
      if (token + kBlockTokens < end) start_keys(block + 1, begin, end);
      if (some) fold_block(split, weights, token, seen);
      if (block % kSplitBlocks == kSplitBlocks - 1 || token + kBlockTokens >= end) {
        fold_split(whole, split, token / kSplitTokens * kSplitTokens, seen);
        split.clear();
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int query = warp * kQueries + lane / 4 + i * 8;
      if (rows[i] >= 0) store(whole, i, out + place(tile_row + rows[i], query));
    }
  }

  __device__ __forceinline__ void start_keys(int block, int begin, int end) const {
    start(block, begin, end, 0);
  }
  __device__ __forceinline__ void start_values(int block, int begin, int end) const {
    start(block, begin, end, 1);
  }

  // Copies of one plane of a block; of tokens that no row sees there may be no pages.
  __device__ __forceinline__ void start(int block, int begin, int end, int plane) const {
    uint4* to = shared.to[plane];
#pragma unroll
    for (int i = 0; i < Shared::kCopies; ++i) {
      const int in_page = shared.token + i * Shared::kStride % kPageTokens;
      const int index = block * kBlockPages + i * Shared::kStride / kPageTokens;
      const int token = index * kPageTokens + in_page;
      uint4* place = to + i * Shared::kThreads;
      if (token >= begin && token < end) {
        start_copy(place, pages.page(index, plane) + in_page * kUnits + shared.unit);
      } else {
        *place = {0, 0, 0, 0};
      }
    }
    end_batch_of_copies();
  }

  __device__ __forceinline__ void fold_block(State<kDim>& split, const BlockWeights& weights,
                                             int token, const Seen& seen) const {
    Factors by[2];
    bool some[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      some[i] = seen.some(i, token, kBlockTokens);
      by[i] = factors(split.largest[i], weights.largest[i]);
      if (some[i]) {
        split.totals[i] = folded(split.totals[i], weights.totals[i], by[i]);
        split.largest[i] = by[i].largest;
      }
    }
    block_values<kDim>(weights, shared, [&](int n, const float (&sums)[4]) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float sum = folded(split.sums[n][i], sums[i], by[i / 2]);
        split.sums[n][i] = some[i / 2] ? sum : split.sums[n][i];
      }
    });
  }

  __device__ __forceinline__ void fold_split(Kept<kDim>& whole, const State<kDim>& split, int token,
                                             const Seen& seen) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!seen.some(i, token, kSplitTokens)) continue;
      const Factors by = factors(whole.largest[i], split.largest[i]);
      whole.totals[i] = folded(whole.totals[i], split.totals[i], by);
      whole.largest[i] = by.largest;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
        for (int j = 2 * i; j < 2 * i + 2; ++j) {
          whole.sum(n, j) = folded(whole.sum(n, j), split.sums[n][j], by);
        }
      }
    }
  }

  __device__ __forceinline__ void store(const Kept<kDim>& whole, int i, Y* to) const {
    const float inverse = 1.0f / whole.totals[i];
#pragma unroll
    for (int part = 0; part < kDim / 64; ++part) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        float unit[8];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          unit[n] = whole.sum(part * 8 + n, 2 * i + odd) * inverse;
        }
        write_unit(to + dimension(part * 8, odd), unit);
      }
    }
  }
};

// Rows of the batch that have no slots. The grid is (kKvHeads, n / rows of a tile), shared memory
// kDim * 512 bytes.
template <int kHeads, int kKvHeads, int kDim, int kPlanes, bool kCapped, class Y>
__device__ __forceinline__ void attend_rows(const void* q, const int* table, const void* pages,
                                            void* out, unsigned char* shared, int n, float scale,
                                            float cap, int window) {
  using Tile = RowsTile<kHeads, kKvHeads, kDim, kPlanes, kCapped, Y>;
  uint4* memory = reinterpret_cast<uint4*>(shared);
  Tile tile{static_cast<const uint4*>(q),
            static_cast<Y*>(out),
            {static_cast<const uint4*>(pages), nullptr, static_cast<int>(blockIdx.x)},
            SharedTokens<kDim>(memory),
            reinterpret_cast<float*>(memory + SharedTokens<kDim>::kSize * 2),
            {scale, cap},
            window};
  const int tile_row = blockIdx.y * Tile::kRowsOfTile;
  const int* rows = table + tile_row * 3;
  const int count = min(Tile::kRowsOfTile, n - tile_row);
  for (int first = 0, stop; first < count; first = stop) {
    const int sequence = rows[first * 3 + 1];
    stop = count;  // mostly
    if (rows[(count - 1) * 3 + 1] != sequence) {
      for (stop = first + 1; rows[stop * 3 + 1] == sequence;) ++stop;
    }
    if (rows[first * 3 + 2] < 0) {
      tile.pages.table = table + sequence;
      tile.run(tile_row, first, stop, rows[first * 3]);
    }
  }
}

}  // namespace wherry
#endif
