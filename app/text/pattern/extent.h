// The possible lengths and first characters of a pattern's matches.
#ifndef WHERRY_APP_TEXT_PATTERN_EXTENT_H_
#define WHERRY_APP_TEXT_PATTERN_EXTENT_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <utility>

#include "app/text/pattern/node.h"

namespace wherry::text {

// Possible first characters: one bit for each in ASCII, [128] for all others and the end.
using Firsts = std::bitset<129>;

// The minimum and maximum length of a node's matches in characters (kUnbounded: no maximum).
std::pair<uint32_t, uint32_t> extent(const Node& node);

// Nothing if the node may match the empty text.
std::optional<Firsts> firsts_of(const Node& node);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_EXTENT_H_
