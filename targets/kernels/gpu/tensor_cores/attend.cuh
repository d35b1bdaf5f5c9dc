// Attention of a warp's sixteen queries over blocks of 64 tokens, and the online softmax over
// blocks.
//
// A block has a softmax state of its own: largest score, sum of weights, sum of weighted values.
// Blocks of a split (256 tokens, counted from the sequence's first) are folded in ascending order,
// then splits are. So the bits of a query depend on its position alone, not on which warp or block
// computes a part, nor on other queries of the tile. Scores and sums are float32; queries, keys,
// weights and values are multiplied in float16. Scores are logarithms to base 2.
#ifndef WHERRY_ATTEND
#define WHERRY_ATTEND

namespace wherry {

constexpr int kPageTokens = 16;
constexpr int kBlockPages = 4;
constexpr int kBlockTokens = kBlockPages * kPageTokens;
constexpr int kSplitTokens = 256;
constexpr int kSplitBlocks = kSplitTokens / kBlockTokens;
constexpr int kQueries = 16;         // of a warp
constexpr float kLowest = -3.0e38f;  // below any score

// Dimensions that are multiplied at a time: heads of 80 and 96 are padded.
__host__ __device__ constexpr int padded(int dim, int to) { return (dim + to - 1) / to * to; }

struct Scoring {
  float scale;  // of a score, to base 2; with a cap, of tanh's argument
  float cap;    // of a score, to base 2
};

// Lane 4 r + c has a part of queries r and r + 8 (index 0 and 1 here and below).
struct Seen {  // tokens, from begin up to end
  int end[2], window;

  __device__ __forceinline__ int own(int i) const { return end[i]; }
  __device__ __forceinline__ int begin(int i) const { return max(end[i] - window, 0); }
  __device__ __forceinline__ bool some(int i, int first, int count) const {
    return first < end[i] && first + count > begin(i);
  }
};

// As `Seen`, of rows that see tokens after their own, up to which a window counts.
struct SeenAhead {
  int end[2], window, own_end[2];

  __device__ __forceinline__ int own(int i) const { return own_end[i]; }
  __device__ __forceinline__ int begin(int i) const { return max(own_end[i] - window, 0); }
  __device__ __forceinline__ bool some(int i, int first, int count) const {
    return first < end[i] && first + count > begin(i);
  }
};

// The tokens that the rows of a warp see; the first row sees tokens up to first_end, each next one
// more. A row is named by its `own`, the end of the tokens up to itself.
struct Reach {
  int first_end, last_end, window;

  __device__ __forceinline__ int first_own() const { return first_end; }
  __device__ __forceinline__ int last_own() const { return last_end; }
  __device__ __forceinline__ int end(int own) const { return own; }
  __device__ __forceinline__ int begin(int own) const { return max(own - window, 0); }
  __device__ __forceinline__ bool some(int own, int first, int count) const {
    return first < end(own) && first + count > begin(own);
  }
  __device__ __forceinline__ bool all_see_all(int first, int count) const {
    return first + count <= first_end && first >= begin(last_own());
  }
};

// As `Reach`, of rows that see tokens after their own.
struct ReachAhead {
  int first_end, last_end, window, first, last;  // own of the first and of the last row
  const int* visible;                            // last token of each row, from the first on

  __device__ __forceinline__ int first_own() const { return first; }
  __device__ __forceinline__ int last_own() const { return last; }
  __device__ __forceinline__ int end(int own) const { return visible[own - first] + 1; }
  __device__ __forceinline__ int begin(int own) const { return max(own - window, 0); }
  __device__ __forceinline__ bool some(int own, int first, int count) const {
    return first < end(own) && first + count > begin(own);
  }
  __device__ __forceinline__ bool all_see_all(int first, int count) const {
    return first + count <= first_end && first >= begin(last_own());
  }
};

struct Factors {  // of the earlier state, and of the state folded into it
  float largest, known, added;
};

__device__ __forceinline__ Factors factors(float known, float added) {
  const float largest = fmaxf(known, added);
  return {largest, exp2f(known - largest), exp2f(added - largest)};
}

__device__ __forceinline__ float folded(float known, float added, const Factors& by) {
  return fmaf(known, by.known, added * by.added);
}

// Element `i` of place `n` is dimension `dimension(n, i)` of query i / 2.
template <int kDim>
struct State {
  static constexpr int kPlaces = padded(kDim, 64) / 8;
  float sums[kPlaces][4];
  float totals[2], largest[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int n = 0; n < kPlaces; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[n][i] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) totals[i] = 0.0f, largest[i] = kLowest;
  }
};

// A lane has dimensions 0 to 7 of the units 2 c and 2 c + 1 of each 64: see `block_values`.
__device__ __forceinline__ int dimension(int n, int i) {
  return (n / 8 * 8 + threadIdx.x % 4 * 2 + i % 2) * 8 + n % 8;
}

// Queries r and r + 8 of a lane, of each 32 dimensions 8 c to 8 c + 7: two multiplications, and
// 16 bytes of a key.
template <int kDim>
struct Queries {
  static constexpr int kChunks = padded(kDim, 32) / 32;
  uint4 own[2][kChunks];

  __device__ __forceinline__ void load(int i, const uint4* query) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int unit = chunk * 4 + threadIdx.x % 4;
      own[i][chunk] = unit < kDim / 8 ? load_volatile(query + unit) : uint4{0, 0, 0, 0};
    }
  }
  __device__ __forceinline__ uint4 chunk(int i, int index) const { return own[i][index]; }
};

// Of the queries r and r + 8 of a lane and tokens 8 n + 2 c and 8 n + 2 c + 1.
struct BlockScores {
  float values[kBlockPages * 2][4];
};

struct BlockWeights {
  Word32 words[kBlockPages][4];  // operands of multiplications, 16 tokens each
  float totals[2], largest[2];
};

// The products of queries and keys of a block. tokens.key(page, half, chunk) is a lane's part of 32
// dimensions of token 8 half + r of a page; any values for a token that no query sees. Before each
// key, tokens.prepare(chunk, n) may load some.
template <int kDim, class Given, class Tokens>
__device__ __forceinline__ BlockScores block_scores(const Given& queries, Tokens& tokens) {
  BlockScores scores = {};
#pragma unroll
  for (int chunk = 0; chunk < Queries<kDim>::kChunks; ++chunk) {
    const uint4 upper = queries.chunk(0, chunk), lower = queries.chunk(1, chunk);
    const Word32 a[4] = {upper.x, lower.x, upper.y, lower.y};
    const Word32 b[4] = {upper.z, lower.z, upper.w, lower.w};
#pragma unroll
    for (int n = 0; n < kBlockPages * 2; ++n) {
      tokens.prepare(chunk, n);
      const uint4 key = tokens.key(n / 2, n % 2, chunk);
      multiply_add(scores.values[n], a, key.x, key.y);
      multiply_add(scores.values[n], b, key.z, key.w);
    }
  }
  return scores;
}

// The softmax weights of the block from token `first` on.
template <bool kCapped, class Tokens>
__device__ __forceinline__ BlockWeights block_weights(BlockScores& scored, int first,
                                                      const Tokens& seen, const Scoring& scoring) {
  const int place = threadIdx.x % 4;
  auto& scores = scored.values;
  BlockWeights softmax;
#pragma unroll
  for (int i = 0; i < 2; ++i) softmax.totals[i] = 0.0f, softmax.largest[i] = kLowest;
#pragma unroll
  for (int n = 0; n < kBlockPages * 2; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = first + n * 8 + place * 2 + i % 2;
      float score = scores[n][i] * scoring.scale;
      if (kCapped) score = tanhf(score) * scoring.cap;
      if (token < seen.begin(i / 2) || token >= seen.end[i / 2]) score = kLowest;
      scores[n][i] = score;
      softmax.largest[i / 2] = fmaxf(softmax.largest[i / 2], score);
    }
  }
#pragma unroll
  for (int mask = 1; mask < 4; mask *= 2) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      softmax.largest[i] = fmaxf(softmax.largest[i], shuffle_xor(softmax.largest[i], mask));
    }
  }
#pragma unroll
  for (int n = 0; n < kBlockPages * 2; ++n) {
    float weights[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float score = scores[n][i];  // NaN stays NaN
      weights[i] = score <= kLowest ? 0.0f : exp2f(score - softmax.largest[i / 2]);
      softmax.totals[i / 2] += weights[i];
    }
    softmax.words[n / 2][n % 2 * 2] = nearest_halves(weights[0], weights[1]);
    softmax.words[n / 2][n % 2 * 2 + 1] = nearest_halves(weights[2], weights[3]);
  }
#pragma unroll
  for (int mask = 1; mask < 4; mask *= 2) {
#pragma unroll
    for (int i = 0; i < 2; ++i) softmax.totals[i] += shuffle_xor(softmax.totals[i], mask);
  }
  return softmax;
}

// sums += weights [16, 16] values [16, 64], of these dimensions 2 word and 2 word + 1 of each 8,
// for the queries that `take` it.
//
// An operand has two tokens of one dimension in a word, but memory has two dimensions of a token: a
// to d are word `word` of unit r of tokens 2 c, 2 c + 1, 2 c + 8 and 2 c + 9, and the lane permutes
// them.
template <bool kAll>
__device__ __forceinline__ void add_pair(float (&sums)[8][4], int word, const Word32 (&weights)[4],
                                         Word32 a, Word32 b, Word32 c, Word32 d,
                                         const bool (&take)[2]) {
  auto multiply = [&](int n, Word32 low, Word32 high) {
    float next[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) next[i] = sums[n][i];
    multiply_add(next, weights, low, high);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = kAll || take[i / 2] ? next[i] : sums[n][i];
  };
  multiply(word * 2, low_halves(a, b), low_halves(c, d));
  multiply(word * 2 + 1, high_halves(a, b), high_halves(c, d));
}

template <bool kAll>
__device__ __forceinline__ void add_page(float (&sums)[8][4], const Word32 (&weights)[4],
                                         const uint4 (&v)[4], const bool (&take)[2]) {
  add_pair<kAll>(sums, 0, weights, v[0].x, v[1].x, v[2].x, v[3].x, take);
  add_pair<kAll>(sums, 1, weights, v[0].y, v[1].y, v[2].y, v[3].y, take);
  add_pair<kAll>(sums, 2, weights, v[0].z, v[1].z, v[2].z, v[3].z, take);
  add_pair<kAll>(sums, 3, weights, v[0].w, v[1].w, v[2].w, v[3].w, take);
}

// take(part, sums) for each 64 dimensions of a state: the block's sums of weighted values.
// tokens.add(page, part, weights, sums) adds those of a page; see `add_pair`.
//
// Values that a query does not see are not multiplied by a zero weight: a device's rounding of a
// sum may depend on all operands, and zero times NaN is NaN. A page that a query sees in part is
// multiplied for its position alone, with zeros for invisible values; a page that it does not see
// adds nothing to its sums.
template <int kDim, class Tokens, class Take>
__device__ __forceinline__ void block_values(const BlockWeights& weights, const Tokens& tokens,
                                             const Take& take) {
#pragma unroll(Tokens::kPartsAtATime)
  for (int part = 0; part < padded(kDim, 64) / 64; ++part) {
    keep_order();  // both parts at once would need too many registers
    float sums[8][4] = {};
#pragma unroll
    for (int page = 0; page < kBlockPages; ++page) {
      tokens.add(page, part, weights.words[page], sums);
    }
    take(part, sums);
  }
}

// The pages of a sequence, of one key-value head; table[page] is the id of one.
template <int kKvHeads, int kDim, int kPlanes>
struct Pages {
  static constexpr int kUnits = kDim / 8;  // of a token, 16 bytes each
  const uint4* pages;                      // [all, kPlanes, kKvHeads, kPageTokens, kUnits]
  const int* table;
  int kv_head;

  __device__ __forceinline__ const uint4* page(int id, int plane) const {
    const size_t line = size_t(id) * kPlanes + (plane < kPlanes ? plane : 0);
    return pages + (line * kKvHeads + kv_head) * (kPageTokens * kUnits);
  }
};

// Eight neighbouring elements.
__device__ __forceinline__ void write_unit(float* to, const float (&x)[8]) {
  float4* place = reinterpret_cast<float4*>(to);
  place[0] = {x[0], x[1], x[2], x[3]};
  place[1] = {x[4], x[5], x[6], x[7]};
}

__device__ __forceinline__ void write_unit(Half* to, const float (&x)[8]) {
  Word32 words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = kept_half(x[2 * i]).bits | Word32{kept_half(x[2 * i + 1]).bits} << 16;
  }
  *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
}

}  // namespace wherry
#endif
