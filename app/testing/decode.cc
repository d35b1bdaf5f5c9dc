// In libwherry_readers: image files as programs without Python decode them (app/decode), for tests
// in Python (tests/support/decode.py).
#include "app/decode/decode.h"

#include "app/testing/guarded.h"

using wherry::app::guarded;

// size: gets width and height. Returns the pixels, [height, width, 3], valid until the thread's
// next call; null and wherry_reader_error() if the file cannot be read.
extern "C" __attribute__((visibility("default"))) const uint8_t* wherry_decode_image(
    const char* file, size_t bytes, int* size) {
  return guarded([&]() -> const uint8_t* {
    thread_local wherry::app::RgbImage image;
    image = wherry::app::decode_image({file, bytes});
    size[0] = image.width;
    size[1] = image.height;
    return image.pixels.data();
  });
}
