// Decodes image files in programs without Python, to the pixels that Python's server has of them
// (runtime_py/host/image_files.py).
#ifndef WHERRY_APP_DECODE_DECODE_H_
#define WHERRY_APP_DECODE_DECODE_H_

#include <string_view>

#include "app/image/image.h"

namespace wherry::app {

// Pillow warns of a bomb above this number, and Python's server refuses.
constexpr int64_t kMaximumDecodedPixels = 89'478'485;

// Whether this build has a decoder.
bool decodes_images();

// Decodes a JPEG, PNG, or the first frame of a GIF, turned as its EXIF data say. Transparent parts
// show white; of 16 bits the upper eight count; other colours become RGB without a profile. Throws
// std::invalid_argument with the reason why a file cannot be read, std::bad_alloc without memory.
RgbImage decode_image(std::string_view file);

}  // namespace wherry::app

#endif  // WHERRY_APP_DECODE_DECODE_H_
