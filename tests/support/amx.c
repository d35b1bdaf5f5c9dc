// An emulator of AMX's bfloat16 instructions, after the operations in Intel's Architecture
// Instruction Set Extensions Programming Reference, chapter 3. What raises an exception there is a
// problem here, of which the first is kept.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { kTiles = 8, kRows = 16, kBytes = 64, kColumns = 16 };

static _Thread_local struct {
  uint8_t rows[kTiles];  // 0: the tile is not configured
  uint16_t row_bytes[kTiles];
  uint8_t data[kTiles][kRows][kBytes];
} unit;

static char problem[128];
static int configured;  // threads whose tiles are configured

static int fits(int right, const char* what) {
  if (!right && problem[0] == 0) snprintf(problem, sizeof problem, "%s", what);
  return right;
}

// Returns the first problem since the last call, or "".
const char* emulated_problem(void) {
  static char reported[sizeof problem];
  if (__atomic_exchange_n(&configured, 0, __ATOMIC_SEQ_CST) != 0) {
    fits(0, "tiles are not released");
  }
  memcpy(reported, problem, sizeof reported);
  problem[0] = 0;
  return reported;
}

static int is_configured(int8_t t) {
  return fits(t >= 0 && t < kTiles && unit.rows[t] > 0, "a tile has no configuration");
}

void emulated_ldtilecfg(const uint8_t* config) {
  int zeros = config[1];
  for (int i = 2; i < 16; ++i) zeros |= config[i];
  fits(config[0] == 1 && zeros == 0, "palette, start row or reserved bytes are wrong");
  fits(unit.rows[0] == 0, "tiles are configured twice");
  memset(&unit, 0, sizeof unit);
  for (int t = 0; t < 16; ++t) {
    uint16_t bytes;
    memcpy(&bytes, config + 16 + 2 * t, sizeof bytes);
    const uint8_t rows = config[48 + t];
    fits(bytes <= kBytes && rows <= kRows && (rows == 0) == (bytes == 0), "a tile's size is wrong");
    if (!fits(t < kTiles || rows == 0, "there are eight tiles") || t >= kTiles) continue;
    unit.rows[t] = rows < kRows ? rows : kRows;
    unit.row_bytes[t] = bytes < kBytes ? bytes : kBytes;
  }
  __atomic_add_fetch(&configured, 1, __ATOMIC_SEQ_CST);
}

void emulated_tilerelease(void) {
  if (unit.rows[0] != 0) __atomic_sub_fetch(&configured, 1, __ATOMIC_SEQ_CST);
  memset(&unit, 0, sizeof unit);
}

void emulated_tilezero(int8_t t) {
  if (is_configured(t)) memset(unit.data[t], 0, sizeof unit.data[t]);
}

void emulated_tileloadd64(int8_t t, const uint8_t* base, int64_t stride) {
  if (!is_configured(t)) return;
  memset(unit.data[t], 0, sizeof unit.data[t]);
  for (int i = 0; i < unit.rows[t]; ++i) {
    memcpy(unit.data[t][i], base + i * stride, unit.row_bytes[t]);
  }
}

void emulated_tilestored64(int8_t t, uint8_t* base, int64_t stride) {
  if (!is_configured(t)) return;
  for (int i = 0; i < unit.rows[t]; ++i) {
    memcpy(base + i * stride, unit.data[t][i], unit.row_bytes[t]);
  }
}

static inline float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Denormals are zeros, those that are read and those that are written.
static inline float flushed(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits & 0x7F800000) == 0 ? of_bits(bits & 0x80000000) : value;
}

static inline float element(uint32_t pair, int odd) {
  return flushed(of_bits(odd ? pair & 0xFFFF0000 : pair << 16));
}

// The sums of even elements and of odd ones, each from zero by fused multiply-adds in ascending
// order, are added to each other and then to C.
void emulated_tdpbf16ps(int8_t c, int8_t a, int8_t b) {
  if (!is_configured(a) || !is_configured(b) || !is_configured(c)) return;
  const int pairs = unit.row_bytes[a] / 4, columns = unit.row_bytes[b] / 4;
  if (!fits(a != b && a != c && b != c, "two operands are one tile") ||
      !fits(unit.rows[c] == unit.rows[a] && unit.row_bytes[c] == unit.row_bytes[b] &&
                unit.rows[b] == pairs,
            "the sizes of tiles do not fit")) {
    return;
  }
  for (int m = 0; m < unit.rows[a]; ++m) {
    uint32_t own[kColumns], row[kColumns];
    float even[kColumns] = {0}, odd[kColumns] = {0}, sums[kColumns];
    memcpy(own, unit.data[a][m], sizeof own);
    for (int k = 0; k < pairs; ++k) {
      const float first = element(own[k], 0), second = element(own[k], 1);
      memcpy(row, unit.data[b][k], sizeof row);
      for (int n = 0; n < kColumns; ++n) {
        even[n] = flushed(fmaf(first, element(row[n], 0), even[n]));
        odd[n] = flushed(fmaf(second, element(row[n], 1), odd[n]));
      }
    }
    memcpy(sums, unit.data[c][m], sizeof sums);
    for (int n = 0; n < columns; ++n) {
      sums[n] = flushed(flushed(sums[n]) + flushed(even[n] + odd[n]));
    }
    memcpy(unit.data[c][m], sums, sizeof sums);
  }
}
