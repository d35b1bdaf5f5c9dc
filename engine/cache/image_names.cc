#include "cache/image_names.h"

#include "support/error.h"

namespace wherry {

int32_t ImageNames::name(const ImageDigest& digest, int64_t rows,
                         std::shared_ptr<const ImageTile>& tile) {
  const Key key{digest, rows};
  auto match = known_.find(key);
  if (match != known_.end()) {
    Known& known = match->second;
    order_.splice(order_.end(), order_, known.place);
    if (auto same = known.tile.lock()) {
      tile = std::move(same);
    } else {
      known.tile = tile;
    }
    return known.name;
  }
  if (last_ == INT32_MIN + 1) {
    throw Error(WHERRY_INTERNAL,
                "the engine has had 2^31 - 1 different images: restart it to go on");
  }
  if (known_.size() >= most_) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(key);
  known_.emplace(key, Known{--last_, tile, std::prev(order_.end())});
  return last_;
}

}  // namespace wherry
