// Weights [N, K] in the packed layout for the lanes of a warp, see layout.py.
#ifndef WHERRY_WEIGHTS
#define WHERRY_WEIGHTS

namespace wherry {

constexpr int kChunk = 64;  // columns of the weight with adjacent pieces: four multiplications
constexpr int kSteps = 4;   // multiplications of a chunk, 16 columns each
constexpr int kRows = 16;   // of a row tile

// Slices of K: each is summed in ascending order, then the slices are added in ascending order.
// Every kernel has this order, for any number of tokens.
__host__ __device__ constexpr int slices(int k) { return smaller(8, k / kChunk); }
__device__ __forceinline__ int first_chunk(int k, int slice) {
  return slice * (k / kChunk) / slices(k);
}

struct Piece {  // a single load of a lane; a chunk has kPieces
  uint4 words;
  Word32 scales;
  Word32 offsets;  // 0 in schemes without them
};

// Numbers of 4 bits as float16 from 1024 on, which has steps of 1: its low bits are an integer.
// Those at bits 0 and 16 of a word, plus 1024; those at bits 4 and 20, times 16 plus 1024.
__device__ __forceinline__ Word32 low_numbers(Word32 w) { return masked<0x000f000f>(w, 0x64006400u); }
__device__ __forceinline__ Word32 high_numbers(Word32 w) { return masked<0x00f000f0>(w, 0x64006400u); }

// A row tile's pieces for one lane, from some chunk on: a loop advances the addresses, so that a
// load costs no more than an addition.
template <class Weights>
struct TilePieces {
  const uint4* words;
  const Word32* scales;

  __device__ __forceinline__ Piece load(int chunk, int piece) const {
    const Word32* own = scales + chunk * Weights::kScales;
    return {load_once(words + (chunk * Weights::kPieces + piece) * 32),
            Weights::kScales == 0 ? 0 : load_once(own),
            Weights::kOffsetsAt == 0 ? 0 : load_once(own + Weights::kOffsetsAt)};
  }
  __device__ __forceinline__ void advance(int chunks) {
    words += chunks * (Weights::kPieces * 32);
    scales += chunks * Weights::kScales;
  }
};

// Weights whose words are followed by scales, and perhaps by offsets, kScalesOfChunk words a chunk;
// with kFactors then by a float32 for each row, which multiplies the row's sums.
template <int kN, int kK, int kPiecesOfChunk, int kScalesOfChunk, bool kOffsets,
          bool kFactors = false>
struct PackedWeights {
  static constexpr int kPieces = kPiecesOfChunk, kScales = kScalesOfChunk;
  static constexpr int kTiles = divided_up(kN, kRows);
  static constexpr int kChunks = kK / kChunk;
  static constexpr size_t kOffsetsAt = kOffsets ? size_t{kTiles} * kChunks * kScales : 0;
  static constexpr size_t kFactorsAt =
      size_t{kTiles} * kChunks * (kPieces * 128 + kScales * (kOffsets ? 2 : 1));
  const uint4* words;
  const Word32* scales;

  // The place of a lane's scales among those of a chunk: it has one alone, or with neighbours.
  static __device__ __forceinline__ int of_lane(int lane) { return lane * kScales / 32; }

  __device__ __forceinline__ PackedWeights(const void* packed, int lane)
      : words(static_cast<const uint4*>(packed) + lane),
        scales(static_cast<const Word32*>(packed) + size_t{kTiles} * kChunks * kPieces * 128 +
               of_lane(lane)) {}

  __device__ __forceinline__ TilePieces<PackedWeights> tile(int index) const {
    const size_t at = size_t(index) * kChunks;
    return {words + at * (kPieces * 32), scales + at * kScales};
  }
  // The factor of row `row` among the rows of all row tiles; 1 without factors.
  static __device__ __forceinline__ float factor(const void* packed, int row) {
    return kFactors ? static_cast<const float*>(packed)[kFactorsAt + row] : 1.0f;
  }
  // The scales of a row tile for all lanes.
  __device__ __forceinline__ const uint4* all_scales(int index) const {
    const Word32* first = scales - of_lane(threadIdx.x % 32) + size_t(index) * (kChunks * kScales);
    return reinterpret_cast<const uint4*>(first);
  }
  __device__ __forceinline__ Piece load(int index, int chunk, int piece) const {
    return tile(index).load(chunk, piece);
  }
};

// The scale of a piece's upper row, twice, and that of its lower row.
__device__ __forceinline__ Word32 upper_scale(const Piece& piece) {
  return low_halves(piece.scales, piece.scales);
}
__device__ __forceinline__ Word32 lower_scale(const Piece& piece) {
  return high_halves(piece.scales, piece.scales);
}

__device__ __forceinline__ Word32 word_of(const Piece& piece, int step) {
  return step == 0   ? piece.words.x
         : step == 1 ? piece.words.y
         : step == 2 ? piece.words.z
                     : piece.words.w;
}

// What is subtracted from numbers of 4 or 8 bits, or added: kZero for all, or with kOffset of each
// scale the zero point plus 1024, or the minimum.
enum class Offset { kNone, kZero, kMinimum };

// 4 bits. A lane's piece is its part of a chunk: a word a step, and the scales of its two rows; its
// columns of a chunk share them.
template <int kN, int kK, int kScales, Offset kOffset, int kZero = 0>
struct Nibbles : PackedWeights<kN, kK, 1, kScales, kOffset != Offset::kNone> {
  using PackedWeights<kN, kK, 1, kScales, kOffset != Offset::kNone>::PackedWeights;

  // Each (number - zero point) * scale, or number * scale + minimum, rounded once.
  static __device__ __forceinline__ void open(const Piece& piece, int step, Word32 (&a)[4]) {
    const Word32 w = word_of(piece, step);
    const Word32 scale[2] = {upper_scale(piece), lower_scale(piece)};
    const Word32 offset[2] = {low_halves(piece.offsets, piece.offsets),
                            high_halves(piece.offsets, piece.offsets)};
    const Word32 sixteenth = 0x2c002c00u;
    // 1024 and the zero point; -(64 and the zero point) is 960 minus that
    const Word32 zero = kOffset == Offset::kZero ? offset[0] : 0x64006400u + kZero * 0x10001u;
    const Word32 shifted =
        kOffset == Offset::kZero ? minus(0x63806380u, offset[1]) : 0xd400d400u + kZero * 0x100010u;
    constexpr bool kMinimum = kOffset == Offset::kMinimum;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Word32 even = minus(low_numbers(w >> (8 * i)), zero);
      const Word32 odd = times_plus(high_numbers(w >> (8 * i)), sixteenth, shifted);
      a[2 * i] = kMinimum ? times_plus(even, scale[0], offset[0]) : times(even, scale[0]);
      a[2 * i + 1] = kMinimum ? times_plus(odd, scale[1], offset[1]) : times(odd, scale[1]);
    }
  }
};

template <int kN, int kK>
using Q4 = Nibbles<kN, kK, 16, Offset::kNone, 7>;

// 8 or 16 numbers, which are bytes when kZero is added.
template <int kZero, int... kNumbers>
struct Codebook {
  static constexpr int kAdded = kZero;

  static __host__ __device__ constexpr Word32 four(int first) {
    const int numbers[] = {kNumbers...};
    Word32 bytes = 0;
    for (int i = 0; i < 4; ++i) bytes |= Word32(numbers[first + i] + kZero) << (8 * i);
    return bytes;
  }
  // The bytes of the indexes of 4 bits in a word, first the lower four, then the upper four.
  static __device__ __forceinline__ void look_up(Word32 w, Word32 (&bytes)[2]) {
    constexpr bool kSixteen = sizeof...(kNumbers) == 16;
    constexpr Word32 k0 = four(0), k4 = four(4), k8 = four(kSixteen ? 8 : 0);
    constexpr Word32 k12 = four(kSixteen ? 12 : 4);
    // By the lower three bits one of each half, and one of these two by the highest bit.
    const Word32 places = kSixteen ? w & 0x77777777u : w;
    const Word32 half = masked<0x44444444>(w >> 1, 0x32103210u);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      bytes[i] = bytes_at(k0, k4, places >> (16 * i));
      if (kSixteen) {
        const Word32 upper = bytes_at(k8, k12, places >> (16 * i));
        bytes[i] = bytes_at(bytes[i], upper, half >> (16 * i));
      }
    }
  }
};

// 4 bits, placed as those of `Nibbles`, which are indexes of a codebook.
template <int kN, int kK, int kScales, class Numbers>
struct Indexes : PackedWeights<kN, kK, 1, kScales, false> {
  using PackedWeights<kN, kK, 1, kScales, false>::PackedWeights;

  static __device__ __forceinline__ void open(const Piece& piece, int step, Word32 (&a)[4]) {
    const Word32 magic = 0x64006400u, zero = magic + Numbers::kAdded * 0x10001u;
    const Word32 scale[2] = {upper_scale(piece), lower_scale(piece)};
    Word32 bytes[2];
    Numbers::look_up(word_of(piece, step), bytes);
    // the pairs are those of bytes 0, 1, 2 and 3 of the two words
    const Word32 pairs[2] = {low_halves(bytes[0], bytes[1]), high_halves(bytes[0], bytes[1])};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Word32 pair = i % 2 ? odd_bytes(pairs[i / 2], magic) : even_bytes(pairs[i / 2], magic);
      a[i] = times(minus(pair, zero), scale[i % 2]);
    }
  }
};

// 8 bits. A lane's piece is its part of two steps: two words each, and the scales of its two rows.
template <int kN, int kK, int kScales, Offset kOffset, int kZero = 0>
struct Bytes : PackedWeights<kN, kK, 2, kScales, kOffset != Offset::kNone> {
  using PackedWeights<kN, kK, 2, kScales, kOffset != Offset::kNone>::PackedWeights;

  // Each (number - zero point) * scale, or number * scale + minimum, rounded once.
  static __device__ __forceinline__ void open(const Piece& piece, int step, Word32 (&a)[4]) {
    const Word32 w[2] = {step % 2 ? piece.words.z : piece.words.x,
                       step % 2 ? piece.words.w : piece.words.y};
    const Word32 magic = 0x64006400u;  // 1024
    const Word32 scale[2] = {upper_scale(piece), lower_scale(piece)};
    const Word32 offset[2] = {low_halves(piece.offsets, piece.offsets),
                            high_halves(piece.offsets, piece.offsets)};
    const Word32 same = kOffset == Offset::kNone ? magic + kZero * 0x10001u : magic;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Word32 bytes = i % 2 ? odd_bytes(w[i / 2], magic) : even_bytes(w[i / 2], magic);
      const Word32 number = minus(bytes, kOffset == Offset::kZero ? offset[i % 2] : same);
      a[i] = kOffset == Offset::kMinimum ? times_plus(number, scale[i % 2], offset[i % 2])
                                         : times(number, scale[i % 2]);
    }
  }
};

template <int kN, int kK>
using Q8 = Bytes<kN, kK, 16, Offset::kNone, 127>;

// Floats of 4 bits (e2m1) at bits 4 kPlace and 16 + 4 kPlace of a word, as float16 2^-14 times as
// large: sign, exponent and mantissa move to their places, and subnormals stay subnormals.
template <int kPlace>
__device__ __forceinline__ Word32 floats_of_4_bits(Word32 w) {
  const Word32 high = w << (12 - 4 * kPlace);
  return masked<0x80008000u>(high, high >> 3 & 0x0e000e00u);
}
// The same of 8 bits (e4m3) in bytes kOdd and kOdd + 2, 2^-8 times as large.
template <int kOdd>
__device__ __forceinline__ Word32 floats_of_8_bits(Word32 w) {
  const Word32 high = w << (8 - 8 * kOdd);
  return masked<0x80008000u>(high, high >> 1 & 0x3f803f80u);
}

// The scales of a piece of floats, that of its upper row twice and that of its lower row: float16, or
// with 8 words a chunk upper bytes of float16, of which four lanes share a word.
template <int kScales>
__device__ __forceinline__ void scales_of(const Piece& piece, Word32 (&scale)[2]) {
  const int group = threadIdx.x % 4 / 2;
  scale[0] = kScales == 8 ? upper_bytes(piece.scales, group) : upper_scale(piece);
  scale[1] = kScales == 8 ? upper_bytes(piece.scales, group + 2) : lower_scale(piece);
}

// Floats of 4 bits, placed as the numbers of `Q4`, with scales and factors.
template <int kN, int kK, int kScales>
struct Floats4 : PackedWeights<kN, kK, 1, kScales, false, true> {
  using PackedWeights<kN, kK, 1, kScales, false, true>::PackedWeights;

  static __device__ __forceinline__ void open(const Piece& piece, int step, Word32 (&a)[4]) {
    const Word32 w = word_of(piece, step);
    Word32 scale[2];
    scales_of<kScales>(piece, scale);
    a[0] = times(floats_of_4_bits<0>(w), scale[0]);
    a[1] = times(floats_of_4_bits<1>(w), scale[1]);
    a[2] = times(floats_of_4_bits<2>(w), scale[0]);
    a[3] = times(floats_of_4_bits<3>(w), scale[1]);
  }
};

// Floats of 8 bits, placed as the numbers of `Bytes`, with scales or without, and factors.
template <int kN, int kK, int kScales>
struct Floats8 : PackedWeights<kN, kK, 2, kScales, false, true> {
  using PackedWeights<kN, kK, 2, kScales, false, true>::PackedWeights;

  static __device__ __forceinline__ void open(const Piece& piece, int step, Word32 (&a)[4]) {
    const Word32 w[2] = {step % 2 ? piece.words.z : piece.words.x,
                       step % 2 ? piece.words.w : piece.words.y};
    Word32 scale[2];
    scales_of<kScales>(piece, scale);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Word32 upper = floats_of_8_bits<0>(w[i]), lower = floats_of_8_bits<1>(w[i]);
      a[2 * i] = kScales == 0 ? upper : times(upper, scale[0]);
      a[2 * i + 1] = kScales == 0 ? lower : times(lower, scale[1]);
    }
  }
};

// float16. A lane's piece is its part of a step.
template <int kN, int kK>
struct F16 : PackedWeights<kN, kK, kSteps, 0, false> {
  using PackedWeights<kN, kK, kSteps, 0, false>::PackedWeights;

  static __device__ __forceinline__ void open(const Piece& piece, int, Word32 (&a)[4]) {
    a[0] = piece.words.x;
    a[1] = piece.words.y;
    a[2] = piece.words.z;
    a[3] = piece.words.w;
  }
};

// Row tile `r` of a warp's kRowTiles: with a gate, tiles of the gate and of the up projection
// alternate.
template <int kN, int kRowTiles, bool kGated>
__device__ __forceinline__ int row_tile(int warp, int r) {
  const int tile =
      kGated ? warp * (kRowTiles / 2) + r / 2 + r % 2 * (kN / 2 / kRows) : warp * kRowTiles + r;
  return min(tile, divided_up(kN, kRows) - 1);
}

}  // namespace wherry
#endif
