// Attention of one row of a sequence: a block has the query heads of a key-value head, and each of
// its warps reads a block of tokens of a split directly from the pages.
#ifndef WHERRY_ATTEND_SPLITS
#define WHERRY_ATTEND_SPLITS

namespace wherry {

// Keys and values of a warp's block of tokens. A lane needs other units of 16 bytes than all
// others, so it loads them itself, into registers: all keys at once, because a decode step of few
// sequences has the time of a few loads from device memory, then 64 dimensions of the values into
// the registers of the keys. Copies of values into shared memory, started with the keys, were slower
// (H100: 7.2 us instead of 6.9 for one sequence of 1,056 tokens, 126 instead of 103 for 64).
template <int kKvHeads, int kDim, int kPlanes>
struct PageTokens {
  static constexpr int kUnits = kDim / 8, kParts = padded(kDim, 64) / 64;
  static constexpr int kChunks = Queries<kDim>::kChunks;
  static constexpr int kChunksAtATime = kChunks <= 4 ? kChunks : 2;  // keys in registers
  static constexpr bool kHolds = kParts <= 2;
  static constexpr int kPartsAtATime = kHolds ? kParts : 1;
  int first, begin, end;                // of the block; what the row sees
  const uint4* keys_at[kBlockPages];    // this lane's first unit of each page
  const uint4* values_at[kBlockPages];  // instead of a page that the row does not see: one it does
  uint4 keys[kChunksAtATime][kBlockPages * 2];
  uint4 first_values[kBlockPages][4];  // values of part 0

  __device__ __forceinline__ PageTokens(const Pages<kKvHeads, kDim, kPlanes>& pages, int first,
                                        int begin, int end)
      : first(first), begin(begin), end(end) {
    const int group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < kBlockPages; ++i) {
      const int page = first / kPageTokens + i;
      const int id = pages.table[max(min(page, (end - 1) / kPageTokens), begin / kPageTokens)];
      keys_at[i] = pages.page(id, 0) + group * kUnits + place;
      values_at[i] = pages.page(id, 1) + place * 2 * kUnits + group;
    }
  }
  __device__ __forceinline__ bool seen(int page) const {
    const int token = first + page * kPageTokens;
    return token < end && token + kPageTokens > begin;
  }

  // Keys of tokens that the row does not see are any numbers.
  __device__ __forceinline__ void prepare(int chunk, int n) {
    if (n != 0 || chunk % kChunksAtATime != 0) return;
    keep_order();
#pragma unroll
    for (int i = 0; i < kChunksAtATime; ++i) {
#pragma unroll
      for (int half = 0; half < kBlockPages * 2; ++half) {
        const uint4* from = keys_at[half / 2] + half % 2 * 8 * kUnits + (chunk + i) * 4;
        const bool inside = (chunk + i) * 4 + threadIdx.x % 4 < kUnits;
        keys[i][half] = inside ? load_once(from) : uint4{0, 0, 0, 0};
      }
    }
    keep_order();
  }
  __device__ __forceinline__ uint4 key(int page, int half, int chunk) const {
    return keys[chunk % kChunksAtATime][page * 2 + half];
  }

  // A lane's values of a page: unit r of `part`, of tokens 2 c, 2 c + 1, 2 c + 8 and 2 c + 9.
  static __device__ __forceinline__ bool value_inside(int part) {
    return part * 8 + static_cast<int>(threadIdx.x) % 32 / 4 < kUnits;
  }
  __device__ __forceinline__ const uint4* value_at(int page, int i, int part) const {
    return values_at[page] + (i / 2 * 8 + i % 2) * kUnits + part * 8;
  }
  __device__ __forceinline__ bool sees_value(int page, int i) const {
    const int token = first + page * kPageTokens + threadIdx.x % 4 * 2 + i / 2 * 8 + i % 2;
    return token >= begin && token < end;
  }
  __device__ __forceinline__ uint4 load_value(int page, int i, int part) const {
    const bool some = sees_value(page, i) && value_inside(part);
    return some ? load_once(value_at(page, i, part)) : uint4{0, 0, 0, 0};
  }
  // After the scores, and before the weights.
  __device__ __forceinline__ void hold_values() {
    if (!kHolds) return;
    keep_order();
#pragma unroll
    for (int page = 0; page < kBlockPages; ++page) {
#pragma unroll
      for (int i = 0; i < 4; ++i) first_values[page][i] = load_value(page, i, 0);
    }
    keep_order();
  }
  __device__ __forceinline__ uint4 value(int page, int i, int part) const {
    return kHolds && part == 0 ? first_values[page][i] : load_value(page, i, part);
  }
  // No branches: loads of all pages' values are in flight at once.
  __device__ __forceinline__ void add(int page, int part, const Word32 (&weights)[4],
                                      float (&sums)[8][4]) const {
    uint4 own[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) own[i] = value(page, i, part);
    add_page<false>(sums, weights, own, {seen(page), seen(page)});
  }
};

// The states of a split's blocks in shared memory. A warp writes units of four dimensions with
// eight lanes at a time: two heads' units 4 c, or those up to three beyond. So unit u of head r is
// at u ^ u / 8 % 2 ^ r % 2 * 2: eight different banks, and for those who read neighbours, too.
template <int kGroup, int kDim>
struct BlockStates {
  static constexpr int kUnits = kDim / 4;                     // of a head
  static constexpr int kSize = kSplitBlocks * kGroup * kDim;  // floats
  float4* sums;                                               // [kSplitBlocks, kGroup, kUnits]
  float* totals;                                              // [kSplitBlocks, kGroup]
  float* largest;

  __device__ __forceinline__ explicit BlockStates(float* memory)
      : sums(reinterpret_cast<float4*>(memory)),
        totals(memory + kSize),
        largest(totals + kSplitBlocks * kGroup) {}
  __device__ __forceinline__ float4& unit(int block, int head, int index) const {
    return sums[(block * kGroup + head) * kUnits + (index ^ index / 8 % 2 ^ head % 2 * 2)];
  }
  // 64 dimensions, see `dimension`.
  __device__ __forceinline__ void put(int block, int part, const float (&of)[8][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int head = lane / 4 + i / 2 * 8, at = dimension(part * 8, i);
      if (head >= kGroup || at >= kDim) continue;
      unit(block, head, at / 4) = {of[0][i], of[1][i], of[2][i], of[3][i]};
      unit(block, head, at / 4 + 1) = {of[4][i], of[5][i], of[6][i], of[7][i]};
    }
  }
  __device__ __forceinline__ void put(int block, const BlockWeights& weights) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int head = lane / 4 + i * 8;
      if (lane % 4 == 0 && head < kGroup) {
        totals[block * kGroup + head] = weights.totals[i];
        largest[block * kGroup + head] = weights.largest[i];
      }
    }
  }
};

// Four dimensions of a state.
struct StateUnit {
  float4 sums;
  float total, largest;

  __device__ __forceinline__ void fold(const StateUnit& more) {
    const Factors by = factors(largest, more.largest);
    sums = {folded(sums.x, more.sums.x, by), folded(sums.y, more.sums.y, by),
            folded(sums.z, more.sums.z, by), folded(sums.w, more.sums.w, by)};
    total = folded(total, more.total, by);
    largest = by.largest;
  }
};

// kUnsplit: one block walks all tokens of a row; the grid is (kKvHeads, n), out [n, kHeads, kDim].
// Otherwise a block has one split; the grid is (slots, kKvHeads), out float32 [slots, kHeads, kDim
// + 2]. Four warps; for shared memory see `shared_of_splits` in attention.py.
template <int kHeads, int kKvHeads, int kDim, int kPlanes, bool kCapped, bool kUnsplit, class Y>
__device__ __forceinline__ void attend_splits(const void* q, const int* table, const void* pages,
                                              void* out, unsigned char* shared, int slots_at,
                                              float scale, float cap, int window) {
  constexpr int kGroup = kHeads / kKvHeads, kThreads = kSplitBlocks * 32;
  constexpr int kUnits = kDim / 4, kAllUnits = kGroup * kUnits;
  using States = BlockStates<kGroup, kDim>;
  using Tokens = PageTokens<kKvHeads, kDim, kPlanes>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int kv_head = kUnsplit ? blockIdx.x : blockIdx.y;
  const int slot = kUnsplit ? 0 : blockIdx.x;
  const int row = kUnsplit ? static_cast<int>(blockIdx.y) : table[slots_at + slot];
  if (row < 0) return;
  const int* about = table + row * 3;
  const int end = about[0] + 1, begin = max(end - window, 0);
  const int first_split = kUnsplit ? begin / kSplitTokens : slot - about[2];
  const int stop_split = kUnsplit ? (end - 1) / kSplitTokens + 1 : first_split + 1;
  const Pages<kKvHeads, kDim, kPlanes> own_pages{static_cast<const uint4*>(pages), table + about[1],
                                                 kv_head};
  const Seen seen{{end, end}, window};
  const size_t first_head = size_t(row) * kHeads + kv_head * kGroup;
  const uint4* queries_at = static_cast<const uint4*>(q) + first_head * (kDim / 8);
  const States states(reinterpret_cast<float*>(shared));
  // State of earlier splits (kUnsplit): each thread's units; totals of heads twice, read and written
  // alternately.
  float4* combined = reinterpret_cast<float4*>(states.largest + kSplitBlocks * kGroup);
  float* combined_totals = reinterpret_cast<float*>(combined + kAllUnits);  // [2, kGroup]
  float* combined_largest = combined_totals + 2 * kGroup;
  for (int split = first_split; split < stop_split; ++split) {
    const int first = split * kSplitTokens + warp * kBlockTokens;
    if (seen.some(0, first, kBlockTokens)) {
      Tokens tokens(own_pages, first, begin, end);
      Queries<kDim> queries;  // the last head fills up to 16
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        queries.load(i, queries_at + min(lane / 4 + i * 8, kGroup - 1) * (kDim / 8));
      }
      BlockScores scores = block_scores<kDim>(queries, tokens);
      tokens.hold_values();
      const BlockWeights weights = block_weights<kCapped>(scores, first, seen, Scoring{scale, cap});
      block_values<kDim>(weights, tokens, [&](int part, const float (&sums)[8][4]) {
        states.put(warp, part, sums);
      });
      states.put(warp, weights);
    }
    __syncthreads();
    const bool begins = split == first_split, ends = split + 1 == stop_split;
    for (int unit = threadIdx.x; unit < kAllUnits; unit += kThreads) {
      const int head = unit / kUnits, of_head = unit % kUnits;
      StateUnit sum{{0.0f, 0.0f, 0.0f, 0.0f}, 0.0f, kLowest};
#pragma unroll
      for (int block = 0; block < kSplitBlocks; ++block) {
        if (seen.some(0, split * kSplitTokens + block * kBlockTokens, kBlockTokens)) {
          const int at = block * kGroup + head;
          sum.fold({states.unit(block, head, of_head), states.totals[at], states.largest[at]});
        }
      }
      if (!kUnsplit) {
        const size_t head_at = size_t(slot) * kHeads + kv_head * kGroup + head;
        float* part = static_cast<float*>(out) + head_at * (kDim + 2);
        float2* place = reinterpret_cast<float2*>(part + of_head * 4);
        place[0] = {sum.sums.x, sum.sums.y};
        place[1] = {sum.sums.z, sum.sums.w};
        if (of_head == 0) part[kDim] = sum.total, part[kDim + 1] = sum.largest;
        continue;
      }
      const int from = split % 2 * kGroup + head, to = (split + 1) % 2 * kGroup + head;
      StateUnit all{{0.0f, 0.0f, 0.0f, 0.0f}, 0.0f, kLowest};
      if (!begins) all = {combined[unit], combined_totals[from], combined_largest[from]};
      all.fold(sum);
      if (ends) {
        const float inverse = 1.0f / all.total;
        Y* to_place = static_cast<Y*>(out) + first_head * kDim + unit * 4;
        write(to_place, all.sums.x * inverse);
        write(to_place + 1, all.sums.y * inverse);
        write(to_place + 2, all.sums.z * inverse);
        write(to_place + 3, all.sums.w * inverse);
      } else {
        combined[unit] = all.sums;
        if (of_head == 0) combined_totals[to] = all.total, combined_largest[to] = all.largest;
      }
    }
    if (!ends) __syncthreads();
  }
}

// Merges the states that `attend_splits` stored for the splits of a row and head. The grid is
// (kHeads, sequences); a thread has one dimension, and up to 31 threads are padding.
template <int kHeads, int kDim, class Y>
__device__ __forceinline__ void merge_splits(const int* table, const int* query_indptr,
                                             const void* parts, void* out, int window) {
  const int row = query_indptr[blockIdx.y];
  const int* about = table + row * 3;
  const int end = about[0] + 1, slot = about[2];
  if (slot < 0 || threadIdx.x >= kDim) return;
  float sum = 0.0f, total = 0.0f, largest = kLowest;
  for (int split = max(end - window, 0) / kSplitTokens; split * kSplitTokens < end; ++split) {
    const size_t at = (size_t(slot + split) * kHeads + blockIdx.x) * (kDim + 2);
    const float* part = static_cast<const float*>(parts) + at;
    const Factors by = factors(largest, part[kDim + 1]);
    sum = folded(sum, part[threadIdx.x], by);
    total = folded(total, part[kDim], by);
    largest = by.largest;
  }
  const size_t at = (size_t(row) * kHeads + blockIdx.x) * kDim + threadIdx.x;
  write(static_cast<Y*>(out) + at, sum * (1.0f / total));
}

}  // namespace wherry
#endif
