// Attention of one row of a sequence: a block has the query heads of a key-value head, and each of
// its warps reads a block of tokens of a split directly from the pages.
#ifndef WHERRY_ATTEND_SPLITS
#define WHERRY_ATTEND_SPLITS

namespace wherry {

template <int kKvHeads, int kDim, int kPlanes>
struct PageTokens {
  static constexpr int kAtATime = 8, kPartsAtATime = 1;  // keys: device memory has a long latency
  Pages<kKvHeads, kDim, kPlanes> pages;
  int ids[kBlockPages];   // -1: of a page that the row does not see
  int first, begin, end;  // of the block; what the row sees

  __device__ __forceinline__ PageTokens(const Pages<kKvHeads, kDim, kPlanes>& pages, int first,
                                        int begin, int end)
      : pages(pages), first(first), begin(begin), end(end) {
#pragma unroll
    for (int i = 0; i < kBlockPages; ++i) {
      const int token = first + i * kPageTokens;
      const bool some = token < end && token + kPageTokens > begin;
      ids[i] = some ? pages.table[token / kPageTokens] : -1;
    }
  }
  __device__ __forceinline__ uint4 read(int plane, int page, int token, int unit) const {
    const int own = first + page * kPageTokens + token;
    if (own < begin || own >= end || unit >= kDim / 8) return {0, 0, 0, 0};
    return load_once(pages.page(ids[page], plane) + token * (kDim / 8) + unit);
  }
  __device__ __forceinline__ uint4 key(int page, int half, int chunk) const {
    const int group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    return read(0, page, half * 8 + group, chunk * 4 + place);
  }
  __device__ __forceinline__ uint4 value(int page, int i, int part) const {
    const int group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    return read(1, page, place * 2 + i / 2 * 8 + i % 2, part * 8 + group);
  }
  // No branches: loads of all pages' values are in flight at once.
  __device__ __forceinline__ void add(int page, int part, const Word (&weights)[4],
                                      float (&sums)[8][4]) const {
    uint4 own[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) own[i] = value(page, i, part);
    const bool some = ids[page] >= 0;
    add_page<false>(sums, weights, own, {some, some});
  }
};

// kWhole: one block walks all tokens of a row; the grid is (kKvHeads, n), out [n, kHeads, kDim].
// Otherwise a block has one split; the grid is (slots, kKvHeads), out float32 [slots, kHeads, kDim
// + 2]. Four warps; for shared memory see `shared_of_splits` in attention.py.
template <int kHeads, int kKvHeads, int kDim, int kPlanes, bool kCapped, bool kWhole, class Y>
__device__ __forceinline__ void attend_splits(const void* q, const int* table, const void* pages,
                                              void* out, unsigned char* shared, int slots_at,
                                              float scale, float cap, int window) {
  constexpr int kGroup = kHeads / kKvHeads, kThreads = kSplitBlocks * 32;
  constexpr int kElements = kGroup * kDim;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int kv_head = kWhole ? blockIdx.x : blockIdx.y;
  const int slot = kWhole ? 0 : blockIdx.x;
  const int row = kWhole ? static_cast<int>(blockIdx.y) : table[slots_at + slot];
  if (row < 0) return;
  const int* about = table + row * 3;
  const int end = about[0] + 1, begin = max(end - window, 0);
  const int first_split = kWhole ? begin / kSplitTokens : slot - about[2];
  const int stop_split = kWhole ? (end - 1) / kSplitTokens + 1 : first_split + 1;
  const Pages<kKvHeads, kDim, kPlanes> own_pages{static_cast<const uint4*>(pages), table + about[1],
                                                 kv_head};
  const Seen seen{{end, end}, window};
  const size_t first_head = size_t(row) * kHeads + kv_head * kGroup;
  const uint4* queries_at = static_cast<const uint4*>(q) + first_head * (kDim / 8);
  float* sums = reinterpret_cast<float*>(shared);   // [kSplitBlocks, kGroup, kDim]
  float* totals = sums + kSplitBlocks * kElements;  // [kSplitBlocks, kGroup]
  float* largest = totals + kSplitBlocks * kGroup;
  // State of earlier splits (kWhole): each thread's elements; totals of heads twice, read and
  // written alternately.
  float* whole = largest + kSplitBlocks * kGroup;  // [kGroup, kDim]
  float* whole_totals = whole + kElements;         // [2, kGroup]
  float* whole_largest = whole_totals + 2 * kGroup;
  for (int split = first_split; split < stop_split; ++split) {
    const int first = split * kSplitTokens + warp * kBlockTokens;
    if (seen.some(0, first, kBlockTokens)) {
      Queries<kDim> queries;  // the last head fills up to 16
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        queries.load(i, queries_at + min(lane / 4 + i * 8, kGroup - 1) * (kDim / 8));
      }
      const PageTokens<kKvHeads, kDim, kPlanes> tokens(own_pages, first, begin, end);
      const BlockWeights weights =
          block_weights<kDim, kCapped>(queries, tokens, first, seen, Scoring{scale, cap});
      block_values<kDim>(weights, tokens, [&](int n, const float (&block)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int head = lane / 4 + i / 2 * 8;
          const int at = dimension(n, i);
          if (head < kGroup && at < kDim) sums[(warp * kGroup + head) * kDim + at] = block[i];
        }
      });
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int head = lane / 4 + i * 8;
        if (lane % 4 == 0 && head < kGroup) {
          totals[warp * kGroup + head] = weights.totals[i];
          largest[warp * kGroup + head] = weights.largest[i];
        }
      }
    }
    __syncthreads();
    const bool begins = split == first_split, ends = split + 1 == stop_split;
    for (int element = threadIdx.x; element < kElements; element += kThreads) {
      const int head = element / kDim;
      float sum = 0.0f, total = 0.0f, top = kLowest;
#pragma unroll
      for (int block = 0; block < kSplitBlocks; ++block) {
        if (seen.some(0, split * kSplitTokens + block * kBlockTokens, kBlockTokens)) {
          const int at = block * kGroup + head;
          const Factors by = factors(top, largest[at]);
          sum = folded(sum, sums[block * kElements + element], by);
          total = folded(total, totals[at], by);
          top = by.largest;
        }
      }
      if (!kWhole) {
        const size_t head_at = size_t(slot) * kHeads + kv_head * kGroup + head;
        float* part = static_cast<float*>(out) + head_at * (kDim + 2);
        part[element % kDim] = sum;
        if (element % kDim == 0) part[kDim] = total, part[kDim + 1] = top;
        continue;
      }
      const int from = split % 2 * kGroup + head, to = (split + 1) % 2 * kGroup + head;
      const Factors by = factors(begins ? kLowest : whole_largest[from], top);
      sum = folded(begins ? 0.0f : whole[element], sum, by);
      total = folded(begins ? 0.0f : whole_totals[from], total, by);
      if (ends) {
        write(static_cast<Y*>(out) + first_head * kDim + element, sum * (1.0f / total));
      } else {
        whole[element] = sum;
        if (element % kDim == 0) whole_totals[to] = total, whole_largest[to] = by.largest;
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
