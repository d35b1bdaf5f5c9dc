#include "cache/image_names.h"

#include "support/error.h"

namespace wherry {

int32_t ImageNames::name(const TilePart& complete, std::shared_ptr<const ImageTile>& tile) {
  Known& own = known(complete);
  if (auto same = own.tile.lock()) {
    tile = std::move(same);
  } else {
    own.tile = tile;
  }
  return own.name;
}

ImageNames::Known& ImageNames::known(const TilePart& part) {
  auto match = known_.find(part);
  if (match != known_.end()) {
    order_.splice(order_.end(), order_, match->second.place);
    return match->second;
  }
  if (last_ == INT32_MIN + 1) {
    throw Error(WHERRY_INTERNAL,
                "the engine has had 2^31 - 1 different images: restart it to go on");
  }
  if (known_.size() >= most_) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(part);
  return known_.emplace(part, Known{--last_, {}, std::prev(order_.end())}).first->second;
}

}  // namespace wherry
