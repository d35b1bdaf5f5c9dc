// Attention of sequences with several rows in a step: a block has a tile of rows, with all query
// heads of a key-value head, and walks the sequence's keys and values.
#ifndef WHERRY_ATTEND_ROWS
#define WHERRY_ATTEND_ROWS

namespace wherry {

constexpr int kRowWarps = 4;
constexpr int kTileQueries = kRowWarps * kQueries;

// A larger head is divided among blocks, each of which computes its scores again.
constexpr int kMostOfBlock = 128;  // dimensions of values

// Units of a token in shared memory, padded with zeros to a power of two.
__host__ __device__ constexpr int units_of(int dim) { return dim <= 64 ? 8 : dim <= 128 ? 16 : 32; }

// Copies of a block of tokens into shared memory, by all threads.
template <int kDim>
struct Copies {
  static constexpr int kUnits = units_of(kDim), kThreads = kRowWarps * 32;
  static constexpr int kSize = kBlockTokens * kUnits;
  static constexpr int kCount = kSize / kThreads;    // of a thread
  static constexpr int kStride = kThreads / kUnits;  // tokens between two copies
  static_assert(kPageTokens % kStride == 0, "all copies of a thread have one place in a page");
  int token, unit;  // of the first copy
  uint4* to;

  __device__ __forceinline__ Copies() : token(threadIdx.x / kUnits), unit(threadIdx.x % kUnits) {}
};

// Keys and values of a block of tokens in shared memory. Eight lanes at a time read units of 16
// bytes: four units of two keys, or two units of four values, all from different banks. So unit u
// of token t is at u ^ t % 2 * 4 for keys, at u ^ t % 8 / 2 * 2 for values. Terms that are equal
// for all pages and all eight tokens are computed once.
template <int kDim, int kOut>
struct SharedTokens {
  Copies<kDim> of_keys;
  Copies<kOut> of_values;
  static constexpr int kKeyUnits = units_of(kDim), kValueUnits = units_of(kOut);
  static_assert(Copies<kDim>::kStride % 2 == 0 && Copies<kOut>::kStride % 8 == 0,
                "places repeat after so many tokens");
  static constexpr int kAtATime = 4;  // keys that a lane reads at once
  static constexpr int kSize = Copies<kDim>::kSize + Copies<kOut>::kSize;
  const uint4* keys[2];  // of even and odd chunks
  const uint4* values;

  __device__ __forceinline__ explicit SharedTokens(uint4* memory) {
    uint4* value_memory = memory + Copies<kDim>::kSize;
    const int group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    keys[0] = memory + group * kKeyUnits + place + group % 2 * 4;
    keys[1] = memory + group * kKeyUnits + place + 4 - group % 2 * 4;
    values = value_memory + place * 2 * kValueUnits + (group ^ place * 2);
    const int key = of_keys.token, value = of_values.token;
    of_keys.to = memory + key * kKeyUnits + (of_keys.unit ^ key % 2 * 4);
    of_values.to = value_memory + value * kValueUnits + (of_values.unit ^ value % 8 / 2 * 2);
  }
  __device__ __forceinline__ void prepare(int, int n) const {
    if (n % kAtATime == 0) keep_order();
  }
  __device__ __forceinline__ uint4 key(int page, int half, int chunk) const {
    return keys[chunk % 2][(page * 2 + half) * 8 * kKeyUnits + chunk / 2 * 8];
  }
  __device__ __forceinline__ uint4 value(int page, int i, int part) const {
    return *value_at(page, i, part);
  }
  __device__ __forceinline__ Word32 value_word(int page, int i, int part, int word) const {
    return reinterpret_cast<const Word32*>(value_at(page, i, part))[word];
  }

 private:
  __device__ __forceinline__ const uint4* value_at(int page, int i, int part) const {
    return values + (page * kPageTokens + i / 2 * 8 + i % 2) * kValueUnits + part * 8;
  }
};

// A lane's queries, loaded again for each block of tokens, a quarter more loads: registers have no
// room for queries of large heads.
template <int kDim, bool kReload>
struct RowQueries : Queries<kDim> {};
template <int kDim>
struct RowQueries<kDim, true> {
  const uint4* own[2];

  __device__ __forceinline__ void load(int i, const uint4* query) { own[i] = query; }
  __device__ __forceinline__ uint4 chunk(int i, int index) const {
    const int unit = index * 4 + threadIdx.x % 4;
    return unit < kDim / 8 ? load_volatile(own[i] + unit) : uint4{0, 0, 0, 0};
  }
};

// What the rows of a warp see; kAhead: they see tokens after their own.
template <bool kAhead>
struct Views {
  using Tokens = Seen;
  using Rows = Reach;
};
template <>
struct Views<true> {
  using Tokens = SeenAhead;
  using Rows = ReachAhead;
};

// A block's values for the rows of a warp.
template <class Shared, bool kAhead>
struct RowsValues {
  static constexpr int kPartsAtATime = 2;  // all: a state is in registers
  const Shared& shared;
  int first;  // token of the block
  const typename Views<kAhead>::Tokens& seen;
  const typename Views<kAhead>::Rows& reach;

  __device__ __forceinline__ void add(int page, int part, const Word32 (&weights)[4],
                                      float (&sums)[8][4]) const {
    const int token = first + page * kPageTokens;
    uint4 values[4];
    if (reach.all_see_all(token, kPageTokens)) {
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = shared.value(page, i, part);
      add_page<true>(sums, weights, values, {true, true});
      return;
    }
#pragma unroll 1
    for (int row = reach.first_own(); row <= reach.last_own(); ++row) {
      if (!reach.some(row, token, kPageTokens)) continue;
#pragma unroll
      for (int word = 0; word < 4; ++word) {  // rare, so it uses few registers
        keep_order();
        Word32 v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int own = token + threadIdx.x % 4 * 2 + i / 2 * 8 + i % 2;
          const bool there = own >= reach.begin(row) && own < reach.end(row);
          v[i] = there ? shared.value_word(page, i, part, word) : 0;
        }
        const bool take[2] = {seen.own(0) == row, seen.own(1) == row};
        add_pair<false>(sums, word, weights, v[0], v[1], v[2], v[3], take);
      }
    }
  }
};

// A thread's state of earlier splits, updated once in 256 tokens: registers have no room for it.
template <int kDim>
struct Kept {
  static constexpr int kThreads = kRowWarps * 32, kPlaces = State<kDim>::kPlaces;
  static constexpr int kSize = kPlaces * 4 + 4;  // of a thread
  float* numbers;                                // [kSize, threads]

  __device__ __forceinline__ float& sum(int n, int i) const { return at(n * 4 + i); }
  __device__ __forceinline__ float& total(int i) const { return at(kPlaces * 4 + i); }
  __device__ __forceinline__ float& largest(int i) const { return at(kPlaces * 4 + 2 + i); }
  __device__ __forceinline__ void clear() const {
#pragma unroll
    for (int i = 0; i < kPlaces * 4 + 2; ++i) at(i) = 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) largest(i) = kLowest;
  }

 private:
  __device__ __forceinline__ float& at(int i) const { return numbers[i * kThreads + threadIdx.x]; }
};

// One head of keys and values, and the query heads that share it, of consecutive rows of a
// sequence. table int32: see batch_table.py.
template <int kHeads, int kKvHeads, int kDim, int kPlanes, bool kCapped, class Y, bool kAhead>
struct RowsTile {
  using Tokens = typename Views<kAhead>::Tokens;
  using Rows = typename Views<kAhead>::Rows;
  static constexpr int kGroup = kHeads / kKvHeads, kRowsOfTile = kTileQueries / kGroup;
  static constexpr int kUnits = kDim / 8, kOut = kDim < kMostOfBlock ? kDim : kMostOfBlock;
  static constexpr int kParts = kDim / kOut;
  static_assert(kDim % kOut == 0, "parts of a head are equal");
  using Shared = SharedTokens<kDim, kOut>;

  const uint4* q;  // float16 [n, kHeads, kDim]
  Y* out;          // the same
  Pages<kKvHeads, kDim, kPlanes> pages;
  Shared shared;
  float* kept;  // memory of `Kept`
  Scoring scoring;
  int window;
  int first_out;            // dimension of values
  const int* last_visible;  // [n], the last token that each row sees; kAhead alone

  __device__ __forceinline__ size_t place(int row, int query) const {
    return (size_t(row) * kHeads + pages.kv_head * kGroup + query % kGroup) * kDim;
  }

  // Rows `first` up to `stop` of the tile that begins with `tile_row`; the first is at `position`.
  __device__ __forceinline__ void run(int tile_row, int first, int stop, int position) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int begin = max(position + 1 - window, 0),
              end = end_of(tile_row, first, stop - 1, position);
    Tokens seen{{}, window};
    RowQueries<kDim, (kParts > 1)> queries;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int query = warp * kQueries + lane / 4 + i * 8, row = query / kGroup;
      const bool inside = row >= first && row < stop;
      seen.end[i] = inside ? end_of(tile_row, first, row, position) : 0;
      set_own(seen, i, inside ? position + row - first + 1 : 0);
      queries.load(i, q + place(tile_row + (inside ? row : first), query) / 8);
    }
    // The tokens that any query of the warp sees.
    const int top = max(warp * kQueries / kGroup, first);
    const int bottom = min((warp * kQueries + kQueries - 1) / kGroup, stop - 1);
    const Rows reach = rows_of(tile_row, first, top, bottom, position);

    State<kOut> split;
    const Kept<kOut> combined{kept};
    split.clear();
    combined.clear();
    start_keys(begin / kBlockTokens, begin, end);  // the former rows' keys are no longer read
    for (int block = begin / kBlockTokens; block * kBlockTokens < end; ++block) {
      const int token = block * kBlockTokens;
      const bool some =
          token < reach.last_end && token + kBlockTokens > reach.begin(reach.first_own());
      wait_for_copies<0>();
      __syncthreads();  // keys have arrived, and no thread reads values
      start_values(block, begin, end);
      BlockWeights weights;
      if (some) {
        BlockScores scores = block_scores<kDim>(queries, shared);
        weights = block_weights<kCapped>(scores, token, seen, scoring);
      }
      wait_for_copies<0>();
      __syncthreads();  // values have arrived, and no thread reads keys
      if (token + kBlockTokens < end) start_keys(block + 1, begin, end);
      if (some) fold_block(split, weights, token, seen, reach);
      if (block % kSplitBlocks == kSplitBlocks - 1 || token + kBlockTokens >= end) {
        fold_split(combined, split, token / kSplitTokens * kSplitTokens, seen);
        split.clear();
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int query = warp * kQueries + lane / 4 + i * 8;
      if (seen.end[i] > 0)
        store(combined, i, out + place(tile_row + query / kGroup, query) + first_out);
    }
  }

  // The end of the tokens that a row of the tile sees.
  __device__ __forceinline__ int end_of(int tile_row, int first, int row, int position) const {
    return kAhead ? last_visible[tile_row + row] + 1 : position + row - first + 1;
  }
  static __device__ __forceinline__ void set_own(Seen&, int, int) {}
  static __device__ __forceinline__ void set_own(SeenAhead& seen, int i, int own) {
    seen.own_end[i] = own;
  }
  // The tokens that rows `top` to `bottom` see; there may be none of these.
  __device__ __forceinline__ Rows rows_of(int tile_row, int first, int top, int bottom,
                                          int position) const {
    const bool some = top <= bottom;
    Rows rows{some || !kAhead ? end_of(tile_row, first, top, position) : 0,
              some ? end_of(tile_row, first, bottom, position) : 0, window};
    if (some)
      set_rows(rows, position + top - first + 1, position + bottom - first + 1,
               last_visible + tile_row + top);
    return rows;
  }
  static __device__ __forceinline__ void set_rows(Reach&, int, int, const int*) {}
  static __device__ __forceinline__ void set_rows(ReachAhead& rows, int first, int last,
                                                  const int* visible) {
    rows.first = first, rows.last = last, rows.visible = visible;
  }

  __device__ __forceinline__ void start_keys(int block, int begin, int end) const {
    start<0>(shared.of_keys, kUnits, 0, block, begin, end);
  }
  __device__ __forceinline__ void start_values(int block, int begin, int end) const {
    start<1>(shared.of_values, kOut / 8, first_out / 8, block, begin, end);
  }

  // Copies of `units` of one plane of a block; tokens that no row sees may have no pages.
  template <int kPlane, class Copies>
  __device__ __forceinline__ void start(const Copies& copies, int units, int first_unit, int block,
                                        int begin, int end) const {
#pragma unroll
    for (int i = 0; i < Copies::kCount; ++i) {
      const int in_page = copies.token + i * Copies::kStride % kPageTokens;
      const int index = block * kBlockPages + i * Copies::kStride / kPageTokens;
      const int token = index * kPageTokens + in_page;
      uint4* to = copies.to + i * Copies::kThreads;
      if (token >= begin && token < end && copies.unit < units) {
        start_copy(to, pages.page(pages.table[index], kPlane) + in_page * kUnits + first_unit +
                           copies.unit);
      } else {
        *to = {0, 0, 0, 0};
      }
    }
    end_batch_of_copies();
  }

  __device__ __forceinline__ void fold_block(State<kOut>& split, const BlockWeights& weights,
                                             int token, const Tokens& seen,
                                             const Rows& reach) const {
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
    const RowsValues<Shared, kAhead> values{shared, token, seen, reach};
    block_values<kOut>(weights, values, [&](int part, const float (&sums)[8][4]) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float (&own)[4] = split.sums[part * 8 + n];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float sum = folded(own[i], sums[n][i], by[i / 2]);
          own[i] = some[i / 2] ? sum : own[i];
        }
      }
    });
  }

  __device__ __forceinline__ void fold_split(const Kept<kOut>& combined, const State<kOut>& split,
                                             int token, const Tokens& seen) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!seen.some(i, token, kSplitTokens)) continue;
      const Factors by = factors(combined.largest(i), split.largest[i]);
      combined.total(i) = folded(combined.total(i), split.totals[i], by);
      combined.largest(i) = by.largest;
#pragma unroll
      for (int n = 0; n < State<kOut>::kPlaces; ++n) {
#pragma unroll
        for (int j = 2 * i; j < 2 * i + 2; ++j) {
          combined.sum(n, j) = folded(combined.sum(n, j), split.sums[n][j], by);
        }
      }
    }
  }

  __device__ __forceinline__ void store(const Kept<kOut>& combined, int i, Y* to) const {
    const float inverse = 1.0f / combined.total(i);
#pragma unroll
    for (int part = 0; part < State<kOut>::kPlaces / 8; ++part) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        if (dimension(part * 8, odd) >= kOut) continue;
        float unit[8];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
          unit[n] = combined.sum(part * 8 + n, 2 * i + odd) * inverse;
        }
        write_unit(to + dimension(part * 8, odd), unit);
      }
    }
  }
};

// Rows of the batch that have no slots. The grid is (kKvHeads * parts of a head, n / rows of a
// tile); for shared memory see `shared_of_rows` in attention.py.
template <int kHeads, int kKvHeads, int kDim, int kPlanes, bool kCapped, class Y,
          bool kAhead = false>
__device__ __forceinline__ void attend_rows(const void* q, const int* table, const void* pages,
                                            void* out, unsigned char* shared, int n, float scale,
                                            float cap, int window,
                                            const int* last_visible = nullptr) {
  using Tile = RowsTile<kHeads, kKvHeads, kDim, kPlanes, kCapped, Y, kAhead>;
  const int kv_head = blockIdx.x / Tile::kParts, part = blockIdx.x % Tile::kParts;
  uint4* memory = reinterpret_cast<uint4*>(shared);
  Tile tile{static_cast<const uint4*>(q),
            static_cast<Y*>(out),
            {static_cast<const uint4*>(pages), nullptr, kv_head},
            typename Tile::Shared(memory),
            reinterpret_cast<float*>(memory + Tile::Shared::kSize),
            {scale, cap},
            window,
            part * Tile::kOut,
            last_visible};
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
