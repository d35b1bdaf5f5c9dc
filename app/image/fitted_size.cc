#include "app/image/fitted_size.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace wherry::app {

int nearest_multiple(int pixels, int factor) {
  const int below = pixels / factor, twice = pixels % factor * 2;
  const bool up = twice > factor || (twice == factor && below % 2 == 1);
  return (below + (up ? 1 : 0)) * factor;
}

Size fitted_size(Size image, const AreaBounds& bounds) {
  const int factor = bounds.factor;
  const auto nearest = [&](int side) {
    return std::max(bounds.smallest_side, nearest_multiple(side, factor));
  };
  const Size size{nearest(image.width), nearest(image.height)};
  const int64_t area = int64_t{size.width} * size.height;
  const auto image_area = static_cast<double>(int64_t{image.width} * image.height);
  if (area > bounds.largest_area) {
    const double shrink = std::sqrt(image_area / bounds.largest_area);
    const auto below = [&](int side) {
      return std::max(factor, static_cast<int>(std::floor(side / shrink / factor)) * factor);
    };
    return {below(image.width), below(image.height)};
  }
  if (area < bounds.smallest_area) {
    const double grow = std::sqrt(bounds.smallest_area / image_area);
    const auto above = [&](int side) {
      return static_cast<int>(std::ceil(side * grow / factor)) * factor;
    };
    return {above(image.width), above(image.height)};
  }
  return size;
}

}  // namespace wherry::app
