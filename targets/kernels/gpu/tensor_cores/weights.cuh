// Weights [N, K] in the packed layout for the lanes of a warp, see layout.py.
#ifndef WHERRY_WEIGHTS
#define WHERRY_WEIGHTS

namespace wherry {

constexpr int kChunk = 64;  // columns of the weight with adjacent pieces: four multiplications
constexpr int kSteps = 4;   // multiplications of a chunk, 16 columns each
constexpr int kRows = 16;   // of a row tile

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int divided_up(int a, int b) { return (a + b - 1) / b; }

// Slices of K: each is summed in ascending order, then the slices are added in ascending order.
// Every kernel has this order, for any number of tokens.
__host__ __device__ constexpr int slices(int k) { return smaller(8, k / kChunk); }
__device__ __forceinline__ int first_chunk(int k, int slice) {
  return slice * (k / kChunk) / slices(k);
}

struct Piece {  // a single load of a lane; a chunk has kPieces
  uint4 words;
  Word scales;
  Word offsets;  // 0 in schemes without them
};

// 4 bits, with a float16 scale for each 32 of a row. A lane's piece is its part of a chunk: a word
// a step, and the scales of its two rows; its columns of a chunk are in one group of 32.
template <int kN, int kK>
struct Q4 {
  static constexpr int kPieces = 1;  // of a chunk
  static constexpr int kTiles = divided_up(kN, kRows);
  static constexpr int kChunks = kK / kChunk;
  const uint4* words;
  const Word* scales;

  __device__ __forceinline__ Q4(const void* packed, int lane)
      : words(static_cast<const uint4*>(packed) + lane),
        scales(static_cast<const Word*>(packed) + size_t{kTiles} * kChunks * 128 + lane / 2) {}

  __device__ __forceinline__ Piece load(int tile, int chunk, int) const {
    const size_t at = size_t(tile) * kChunks + chunk;
    return {load_once(words + at * 32), load_once(scales + at * 16), 0};
  }

  // Four words of two float16, each (number - 7) * scale, rounded once.
  static __device__ __forceinline__ void open(const Piece& piece, int step, Word (&a)[4]) {
    const Word w = step == 0   ? piece.words.x
                   : step == 1 ? piece.words.y
                   : step == 2 ? piece.words.z
                               : piece.words.w;
    // A float16 from 1024 on has steps of 1: its low bits are an integer.
    const Word low = 0x000f000fu, next = 0x00f000f0u, magic = 0x64006400u;
    const Word row = (piece.scales & 0xffffu) * 0x10001u,
               lower_row = (piece.scales >> 16) * 0x10001u;
    const Word zero = 0x64076407u;                              // 1031
    const Word sixteenth = 0x2c002c00u, shifted = 0xd470d470u;  // 1 / 16; -(1024 / 16 + 7)
    a[0] = times(minus((w & low) | magic, zero), row);
    a[1] = times(times_plus((w & next) | magic, sixteenth, shifted), lower_row);
    a[2] = times(minus(((w >> 8) & low) | magic, zero), row);
    a[3] = times(times_plus(((w >> 8) & next) | magic, sixteenth, shifted), lower_row);
  }
};

// 4 bits as `Q4`, with a second float16 for each 32 of a row: 1024 plus the zero point, or with
// kMinimum the minimum, which is added.
template <int kN, int kK, bool kMinimum>
struct Q4Offset {
  static constexpr int kPieces = 1;
  static constexpr int kTiles = divided_up(kN, kRows);
  static constexpr int kChunks = kK / kChunk;
  const uint4* words;
  const Word* scales;

  __device__ __forceinline__ Q4Offset(const void* packed, int lane)
      : words(static_cast<const uint4*>(packed) + lane),
        scales(static_cast<const Word*>(packed) + size_t{kTiles} * kChunks * 128 + lane / 2) {}

  __device__ __forceinline__ Piece load(int tile, int chunk, int) const {
    const size_t at = size_t(tile) * kChunks + chunk;
    const Word* own = scales + at * 16;
    return {load_once(words + at * 32), load_once(own),
            load_once(own + size_t{kTiles} * kChunks * 16)};
  }

  // Each (number - zero point) * scale, or number * scale + minimum, rounded once.
  static __device__ __forceinline__ void open(const Piece& piece, int step, Word (&a)[4]) {
    const Word w = step == 0   ? piece.words.x
                   : step == 1 ? piece.words.y
                   : step == 2 ? piece.words.z
                               : piece.words.w;
    const Word low = 0x000f000fu, next = 0x00f000f0u, magic = 0x64006400u;
    const Word scale[2] = {(piece.scales & 0xffffu) * 0x10001u, (piece.scales >> 16) * 0x10001u};
    const Word offset[2] = {(piece.offsets & 0xffffu) * 0x10001u, (piece.offsets >> 16) * 0x10001u};
    const Word sixteenth = 0x2c002c00u;
    // 1024 and the zero point; -(64 and the zero point) is 960 minus that
    const Word zero = kMinimum ? magic : offset[0];
    const Word shifted = kMinimum ? 0xd400d400u : minus(0x63806380u, offset[1]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Word even = minus(((w >> (8 * i)) & low) | magic, zero);
      const Word odd = times_plus(((w >> (8 * i)) & next) | magic, sixteenth, shifted);
      a[2 * i] = kMinimum ? times_plus(even, scale[0], offset[0]) : times(even, scale[0]);
      a[2 * i + 1] = kMinimum ? times_plus(odd, scale[1], offset[1]) : times(odd, scale[1]);
    }
  }
};

template <int kN, int kK>
using Q4Zero = Q4Offset<kN, kK, false>;
template <int kN, int kK>
using Q4Minimum = Q4Offset<kN, kK, true>;

// 8 bits, scales as `Q4`. A lane's piece is its part of two steps: two words each, and the scales.
template <int kN, int kK>
struct Q8 {
  static constexpr int kPieces = 2;
  static constexpr int kTiles = divided_up(kN, kRows);
  static constexpr int kChunks = kK / kChunk;
  const uint4* words;
  const Word* scales;

  __device__ __forceinline__ Q8(const void* packed, int lane)
      : words(static_cast<const uint4*>(packed) + lane),
        scales(static_cast<const Word*>(packed) + size_t{kTiles} * kChunks * 256 + lane / 2) {}

  __device__ __forceinline__ Piece load(int tile, int chunk, int piece) const {
    const size_t at = size_t(tile) * kChunks + chunk;
    return {load_once(words + (at * kPieces + piece) * 32), load_once(scales + at * 16), 0};
  }

  // Each (number - 127) * scale, rounded once.
  static __device__ __forceinline__ void open(const Piece& piece, int step, Word (&a)[4]) {
    const Word w[2] = {step % 2 ? piece.words.z : piece.words.x,
                       step % 2 ? piece.words.w : piece.words.y};
    const Word magic = 0x64006400u, zero = 0x647f647fu;  // 1024; 1024 + 127
    const Word row = (piece.scales & 0xffffu) * 0x10001u,
               lower_row = (piece.scales >> 16) * 0x10001u;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      a[2 * i] = times(minus(even_bytes(w[i], magic), zero), row);
      a[2 * i + 1] = times(minus(odd_bytes(w[i], magic), zero), lower_row);
    }
  }
};

// float16. A lane's piece is its part of a step.
template <int kN, int kK>
struct F16 {
  static constexpr int kPieces = kSteps;
  static constexpr int kTiles = divided_up(kN, kRows);
  static constexpr int kChunks = kK / kChunk;
  const uint4* words;

  __device__ __forceinline__ F16(const void* packed, int lane)
      : words(static_cast<const uint4*>(packed) + lane) {}

  __device__ __forceinline__ Piece load(int tile, int chunk, int step) const {
    const size_t at = (size_t(tile) * kChunks + chunk) * kSteps + step;
    return {load_once(words + at * 32), 0, 0};
  }

  static __device__ __forceinline__ void open(const Piece& piece, int, Word (&a)[4]) {
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
