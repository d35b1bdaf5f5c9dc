// Names tiles of images, and the parts of them that prompts show: equal ones have one name, which
// the prefix cache reads in the place of their tokens.
#ifndef WHERRY_ENGINE_CACHE_IMAGE_NAMES_H_
#define WHERRY_ENGINE_CACHE_IMAGE_NAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <tuple>

#include "model/model.h"

namespace wherry {

using ImageDigest = std::array<uint8_t, 32>;

// All that determines what the rows of a part of a tile are.
struct TilePart {
  ImageDigest digest{};                     // of the tile
  int64_t first = 0, rows = 0;              // rows of the tile's features
  int64_t grid_rows = 0, grid_columns = 0;  // places of the rows on the axes of M-RoPE; 0: as text

  bool operator<(const TilePart& other) const { return key() < other.key(); }

 private:
  std::tuple<const ImageDigest&, int64_t, int64_t, int64_t, int64_t> key() const {
    return {digest, first, rows, grid_rows, grid_columns};
  }
};

// Gives each part a negative number, which no token has. Names are compared by all 256 bits of
// their digests, and a number is never given twice, so different tiles never share pages. Only the
// last `most` names that were asked for are remembered: a tile that comes back later has another
// number, and finds neither its old pages nor its old features.
class ImageNames {
 public:
  explicit ImageNames(size_t most = 1 << 16) : most_(most) {}

  // Returns the name of a part of a tile. Throws WHERRY_INTERNAL after 2^31 - 1 different parts.
  int32_t name(const TilePart& part) { return known(part).name; }
  // Returns the name of a complete tile. Replaces `tile` by an equal one in memory, so that
  // requests with one image share its pixels.
  int32_t name(const TilePart& complete, std::shared_ptr<const ImageTile>& tile);

  size_t size() const { return known_.size(); }

 private:
  struct Known {
    int32_t name;
    std::weak_ptr<const ImageTile> tile;
    std::list<TilePart>::iterator place;
  };

  Known& known(const TilePart& part);

  const size_t most_;
  int32_t last_ = 0;
  std::map<TilePart, Known> known_;
  std::list<TilePart> order_;  // the least recently requested first
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_IMAGE_NAMES_H_
