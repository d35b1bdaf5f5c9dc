// How long what a pattern matches is, and what it begins with.
#ifndef WHERRY_ENGINE_APP_TEXT_PATTERN_EXTENT_H_
#define WHERRY_ENGINE_APP_TEXT_PATTERN_EXTENT_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <utility>

#include "app/text/pattern/node.h"

namespace wherry::text {

// Characters that something can begin with: of ASCII each, [128] for all others and the end.
using Firsts = std::bitset<129>;

// How many characters a node takes: least, and most (kUnbounded: any number).
std::pair<uint32_t, uint32_t> extent(const Node& node);

// Nothing where the node may match without a character.
std::optional<Firsts> firsts_of(const Node& node);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_PATTERN_EXTENT_H_
