#include "app/text/steps/pieces.h"

#include <algorithm>
#include <utility>

#include "app/text/json/json.h"

namespace wherry::text {

namespace {

// Merges adjacent parts according to the behavior; a part to remove keeps `match`.
void arrange(std::vector<Part>& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kRemoved) return;
  if (behavior == SplitBehavior::kIsolated) {
    for (Part& part : parts) part.match = false;
    return;
  }
  bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(parts.begin(), parts.end());
  std::vector<Part> kept;
  bool before = false;  // whether the previous part matched
  for (const Part& part : parts) {
    bool join =
        behavior == SplitBehavior::kContiguous ? part.match == before : part.match && !before;
    if (join && !kept.empty()) {
      (backwards ? kept.back().begin : kept.back().end) = backwards ? part.begin : part.end;
    } else {
      kept.push_back({part.begin, part.end, false});
    }
    before = part.match;
  }
  if (backwards) std::reverse(kept.begin(), kept.end());
  parts = std::move(kept);
}

}  // namespace

SplitBehavior read_behavior(const Json& json) {
  std::string name = json.string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  json.fail("known are Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous");
}

std::vector<Part> parts_of(std::string_view text, const std::vector<Match>& matches,
                           bool inverted) {
  std::vector<Part> parts;
  parts.reserve(matches.size() + 1);
  size_t at = 0;
  for (Match match : matches) {
    if (at < match.begin) parts.push_back({at, match.begin, inverted});
    parts.push_back({match.begin, match.end, !inverted});
    at = match.end;
  }
  if (at < text.size()) parts.push_back({at, text.size(), inverted});
  return parts;
}

void split(Pieces& pieces, SplitBehavior behavior,
           const std::function<std::vector<Part>(std::string_view)>& find) {
  std::vector<Piece> result;
  result.reserve(pieces.list.size());
  for (const Piece& piece : pieces.list) {
    if (piece.id >= 0) {
      result.push_back(piece);
      continue;
    }
    std::vector<Part> parts = find(pieces.of(piece));
    arrange(parts, behavior);
    for (const Part& part : parts) {
      if (part.match || part.begin == part.end) continue;
      result.push_back({piece.begin + part.begin, piece.begin + part.end, -1,
                        piece.at_start && part.begin == 0});
    }
  }
  pieces.list = std::move(result);
}

void rewrite(Pieces& pieces,
             const std::function<void(const Piece&, std::string_view, std::string&)>& write) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 4);
  for (Piece& piece : pieces.list) {
    size_t begin = text.size();
    if (piece.id < 0) {
      write(piece, pieces.of(piece), text);
    } else {
      text += pieces.of(piece);
    }
    piece.begin = begin;
    piece.end = text.size();
  }
  pieces.text = std::move(text);
}

}  // namespace wherry::text
