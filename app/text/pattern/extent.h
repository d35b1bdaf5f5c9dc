// Computes the possible lengths and first characters of a pattern's matches.
#ifndef WHERRY_APP_TEXT_PATTERN_EXTENT_H_
#define WHERRY_APP_TEXT_PATTERN_EXTENT_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <utility>

#include "app/text/pattern/node.h"

namespace wherry::text {

// The set of possible first characters: one bit for each ASCII character, [128] for all others and
// the end of the text.
using Firsts = std::bitset<129>;

// Returns the minimum and maximum length of a node's matches in characters (kUnbounded if there is
// no maximum).
std::pair<uint32_t, uint32_t> extent(const Node& node);

// Returns the possible first characters of a node's matches; nothing if the node may match the
// empty text.
std::optional<Firsts> firsts_of(const Node& node);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_PATTERN_EXTENT_H_
