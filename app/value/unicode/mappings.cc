#include "app/value/unicode/mappings.h"

#include "app/value/unicode/packed.h"
#include "app/value/unicode/tables.h"

namespace wherry::unicode {

// Decodes a table of mappings. An entry maps one character, or a run of consecutive characters to
// consecutive ones: the difference to the previous character, then 2 * length + 1 for a text or 2 *
// length for a run, then the target characters as differences.
Mappings::Mappings(const char* table) {
  PackedNumbers numbers(table);
  char32_t code = 0, target = 0;
  auto next_target = [&] {
    target = static_cast<char32_t>(static_cast<int32_t>(target) + numbers.next_signed());
    return target;
  };
  while (!numbers.done()) {
    code += numbers.next();
    uint32_t head = numbers.next();
    if (head & 1) {
      std::u32string to;
      for (uint32_t i = 0; i < head / 2; ++i) to += next_target();
      map_.emplace(code++, std::move(to));
    } else {
      char32_t first = next_target();
      for (uint32_t i = 0; i < head / 2; ++i) map_.emplace(code++, std::u32string(1, first + i));
    }
  }
}

const Mappings& lower_cases() {
  static const Mappings mappings(tables::kLower);
  return mappings;
}

}  // namespace wherry::unicode
