// Names the tiles of images: equal tiles have one name, which the prefix cache reads in the place
// of their tokens.
#ifndef WHERRY_ENGINE_CACHE_IMAGE_NAMES_H_
#define WHERRY_ENGINE_CACHE_IMAGE_NAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "model/model.h"

namespace wherry {

using ImageDigest = std::array<uint8_t, 32>;

// Gives each tile a negative number, which no token has. Names are compared by all 256 bits of
// their digests, and a number is never given twice, so different tiles never share pages. Only the
// last `most` names that were asked for are remembered: a tile that comes back later has another
// number, and finds neither its old pages nor its old features.
class ImageNames {
 public:
  explicit ImageNames(size_t most = 1 << 16) : most_(most) {}

  // Returns the name of a tile with this digest, which takes `rows` rows of a prompt. Replaces
  // `tile` by an equal one in memory, so that requests with one image share its pixels. Throws
  // WHERRY_INTERNAL after 2^31 - 1 different tiles.
  int32_t name(const ImageDigest& digest, int64_t rows, std::shared_ptr<const ImageTile>& tile);

  size_t size() const { return known_.size(); }

 private:
  using Key = std::pair<ImageDigest, int64_t>;
  struct Known {
    int32_t name;
    std::weak_ptr<const ImageTile> tile;
    std::list<Key>::iterator place;
  };

  const size_t most_;
  int32_t last_ = 0;
  std::map<Key, Known> known_;
  std::list<Key> order_;  // the least recently requested first
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_IMAGE_NAMES_H_
