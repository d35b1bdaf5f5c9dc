// A text in pieces.
#ifndef WHERRY_ENGINE_APP_TEXT_STEPS_PIECES_H_
#define WHERRY_ENGINE_APP_TEXT_STEPS_PIECES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/pattern/pattern.h"

namespace wherry::text {

class Json;

struct Piece {
  size_t begin, end;  // of the text, in bytes; never empty
  int32_t id;         // of an added token; -1: to be encoded
  bool at_start;      // whether it begins where the whole text did
};

struct Pieces {
  std::string text;
  std::vector<Piece> list;

  std::string_view of(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
SplitBehavior read_behavior(const Json& json);

// A part of a piece: what matched, or what lies between.
struct Part {
  size_t begin, end;
  bool match;
};

// The matches and what lies between them; `inverted`: as if they were each other.
std::vector<Part> parts_of(std::string_view text, const std::vector<Match>& matches,
                           bool inverted = false);

// Cuts each piece that is no added token into the parts that `find` gives of it.
void split(Pieces& pieces, SplitBehavior behavior,
           const std::function<std::vector<Part>(std::string_view)>& find);

// Writes each piece that is no added token anew: `write(piece, text)` appends it.
void rewrite(Pieces& pieces,
             const std::function<void(const Piece&, std::string_view, std::string&)>& write);

}  // namespace wherry::text

#endif  // WHERRY_ENGINE_APP_TEXT_STEPS_PIECES_H_
