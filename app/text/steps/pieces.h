// A text that is split into a list of pieces.
#ifndef WHERRY_APP_TEXT_STEPS_PIECES_H_
#define WHERRY_APP_TEXT_STEPS_PIECES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/text/pattern/pattern.h"

namespace wherry::text {

class Json;

struct Piece {
  size_t begin, end;  // byte range of the text; never empty
  int32_t id;         // id of an added token; -1 if the piece is yet to be encoded
  bool at_start;      // whether the piece begins at the start of the whole text
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

// A part of a piece: a match, or the text between two matches.
struct Part {
  size_t begin, end;
  bool match;
};

// Returns the matches and the texts between them; `inverted` exchanges the two.
std::vector<Part> parts_of(std::string_view text, const std::vector<Match>& matches,
                           bool inverted = false);

// Splits each piece that is not an added token into the parts that `find` returns.
void split(Pieces& pieces, SplitBehavior behavior,
           const std::function<std::vector<Part>(std::string_view)>& find);

// Rewrites each piece that is not an added token: `write(piece, text)` appends the new text.
void rewrite(Pieces& pieces,
             const std::function<void(const Piece&, std::string_view, std::string&)>& write);

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_PIECES_H_
