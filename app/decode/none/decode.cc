// In builds without wuffs, which cmake/wuffs.cmake looks for.
#include "app/decode/decode.h"

#include <stdexcept>

namespace wherry::app {

bool decodes_images() { return false; }

RgbImage decode_image(std::string_view) {
  throw std::logic_error("a program without a decoder of image files decodes one");
}

}  // namespace wherry::app
