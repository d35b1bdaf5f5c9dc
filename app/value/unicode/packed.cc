#include "app/value/unicode/packed.h"

#include "app/value/base64.h"

namespace wherry::unicode {

PackedNumbers::PackedNumbers(const char* table) { decode_base64(table, bytes_); }

uint32_t PackedNumbers::next() {
  uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= (byte & 0x7Fu) << shift;
    if (byte < 0x80) return value;
  }
}

int32_t PackedNumbers::next_signed() {
  uint32_t value = next();
  return static_cast<int32_t>(value >> 1) ^ -static_cast<int32_t>(value & 1);
}

}  // namespace wherry::unicode
