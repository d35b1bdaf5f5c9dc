// How an image file says that its pixels are turned.
#ifndef WHERRY_APP_DECODE_EXIF_H_
#define WHERRY_APP_DECODE_EXIF_H_

#include <string_view>

#include "app/image/image.h"

namespace wherry::app {

// Returns EXIF's orientation of a JPEG (its first APP1 with EXIF data) or PNG (eXIf), 1 to 8; 1 if
// it says none.
int orientation_of(std::string_view file);

// Returns the image upright.
RgbImage upright(RgbImage image, int orientation);

}  // namespace wherry::app

#endif  // WHERRY_APP_DECODE_EXIF_H_
