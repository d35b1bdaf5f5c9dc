// Resizes RGB images as Pillow's Image.resize does, equal in every byte.
#ifndef WHERRY_APP_IMAGE_RESIZE_H_
#define WHERRY_APP_IMAGE_RESIZE_H_

#include "app/image/image.h"

namespace wherry::app {

enum class Filter { kBox, kBilinear, kBicubic, kLanczos };

// image: at least 1 x 1 pixels and within check_image_size(); width, height: at least 1.
RgbImage resize(const RgbImage& image, int width, int height, Filter filter);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_RESIZE_H_
