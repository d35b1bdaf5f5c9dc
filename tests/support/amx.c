// An emulator of AMX's bfloat16 instructions, after the operations in Intel's Architecture
// Instruction Set Extensions Programming Reference. It ends the process on what raises #UD or #GP.
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kTiles = 8, kRows = 16, kBytes = 64 };

static _Thread_local struct {
  uint8_t rows[kTiles];       // 0: the tile is not configured
  uint16_t row_bytes[kTiles];
  uint8_t data[kTiles][kRows][kBytes];
} unit;

static void require(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "AMX: %s\n", what);
  abort();
}

void emulated_ldtilecfg(const uint8_t* config) {
  require(config[0] == 1, "the palette is not 1");
  require(config[1] == 0, "the start row is not 0");
  for (int i = 2; i < 16; ++i) require(config[i] == 0, "a reserved byte is not 0");
  memset(&unit, 0, sizeof unit);
  for (int t = 0; t < 16; ++t) {
    uint16_t bytes;
    memcpy(&bytes, config + 16 + 2 * t, sizeof bytes);
    const uint8_t rows = config[48 + t];
    require((t < kTiles || bytes + rows == 0) && bytes <= kBytes && rows <= kRows,
            "a tile is larger than there are");
    require((rows == 0) == (bytes == 0), "a tile has rows without bytes");
    if (t < kTiles) unit.rows[t] = rows, unit.row_bytes[t] = bytes;
  }
}

void emulated_tilerelease(void) { memset(&unit, 0, sizeof unit); }

static void require_tile(int8_t t) {
  require(t >= 0 && t < kTiles && unit.rows[t] > 0, "a tile has no configuration");
}

void emulated_tilezero(int8_t t) {
  require_tile(t);
  memset(unit.data[t], 0, sizeof unit.data[t]);
}

void emulated_tileloadd64(int8_t t, const uint8_t* base, int64_t stride) {
  require_tile(t);
  memset(unit.data[t], 0, sizeof unit.data[t]);
  for (int i = 0; i < unit.rows[t]; ++i) {
    memcpy(unit.data[t][i], base + i * stride, unit.row_bytes[t]);
  }
}

void emulated_tilestored64(int8_t t, uint8_t* base, int64_t stride) {
  require_tile(t);
  for (int i = 0; i < unit.rows[t]; ++i) {
    memcpy(base + i * stride, unit.data[t][i], unit.row_bytes[t]);
  }
}

// A row of B: 16 pairs of bfloat16; and a pair of A in all lanes.
static __m512 even_of(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }

static __m512 odd_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xFFFF0000)));
}

// The sums of even elements and of odd ones, each from zero by fused multiply-adds in ascending
// order, are added to each other and then to C. Numbers are rounded to nearest even; denormals are
// zeros, those read and those written.
void emulated_tdpbf16ps(int8_t c, int8_t a, int8_t b) {
  require_tile(a), require_tile(b), require_tile(c);
  require(a != b && a != c && b != c, "two operands are one tile");
  const int pairs = unit.row_bytes[a] / 4, columns = unit.row_bytes[b] / 4;
  require(unit.rows[c] == unit.rows[a] && unit.row_bytes[c] == unit.row_bytes[b] &&
              unit.rows[b] == pairs,
          "the sizes of tiles do not fit");
  const unsigned int before = _mm_getcsr();
  _mm_setcsr(0x9FC0);  // no exceptions, to nearest, denormals are zeros
  const __mmask16 mask = (__mmask16)((1u << columns) - 1);
  for (int m = 0; m < unit.rows[a]; ++m) {
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
    for (int k = 0; k < pairs; ++k) {
      int pair;
      memcpy(&pair, unit.data[a][m] + 4 * k, sizeof pair);
      const __m512i row = _mm512_loadu_si512(unit.data[b][k]), own = _mm512_set1_epi32(pair);
      even = _mm512_fmadd_ps(even_of(own), even_of(row), even);
      odd = _mm512_fmadd_ps(odd_of(own), odd_of(row), odd);
    }
    const __m512 sum = _mm512_loadu_ps(unit.data[c][m]);
    const __m512 more = _mm512_add_ps(sum, _mm512_add_ps(even, odd));
    _mm512_mask_storeu_ps(unit.data[c][m], mask, more);
  }
  _mm_setcsr(before);
}
