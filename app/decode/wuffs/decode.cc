// wuffs is memory-safe by construction, and its JPEGs have the bits of libjpeg-turbo's, which
// Pillow has: https://github.com/google/wuffs
#include "app/decode/decode.h"

#include <wuffs.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "app/decode/exif.h"

namespace wherry::app {

namespace {

constexpr int64_t kLarge = int64_t{1} << 24;  // pixels; larger images are decoded one at a time

using Decoder = wuffs_base__image_decoder::unique_ptr;

Decoder decoder_of(std::string_view file) {
  const auto begins = [&](std::string_view with) { return file.substr(0, with.size()) == with; };
  Decoder decoder(nullptr);
  if (begins("\xFF\xD8\xFF")) {
    decoder = wuffs_jpeg__decoder::alloc_as__wuffs_base__image_decoder();
  } else if (begins("\x89PNG")) {
    decoder = wuffs_png__decoder::alloc_as__wuffs_base__image_decoder();
  } else if (begins("GIF8")) {
    decoder = wuffs_gif__decoder::alloc_as__wuffs_base__image_decoder();
  } else if (begins("RIFF") && file.substr(std::min<size_t>(8, file.size()), 4) == "WEBP") {
    throw std::invalid_argument("it is a WebP; this program reads JPEG, PNG and GIF");
  } else {
    throw std::invalid_argument("it is none of JPEG, PNG and GIF, or damaged");
  }
  if (!decoder) throw std::bad_alloc();
  return decoder;
}

void check(const wuffs_base__status& status) {
  if (!status.is_ok()) throw std::invalid_argument(status.message());
}

// The level of a channel over white, in the arithmetic of Pillow's alpha_composite.
uint8_t over_white(uint32_t level, uint32_t alpha) {
  const uint32_t sum = 128 * (level * alpha + 255 * (255 - alpha)) + (128 << 7);
  return static_cast<uint8_t>((((sum >> 8) + sum) >> 8) >> 7);
}

// Makes RGB of BGRA, in its place.
void to_rgb(std::vector<uint8_t>& pixels) {
  const uint8_t* from = pixels.data();
  uint8_t* to = pixels.data();
  for (size_t n = pixels.size() / 4; n > 0; --n, from += 4, to += 3) {
    const uint8_t blue = from[0], green = from[1], red = from[2], alpha = from[3];
    to[0] = over_white(red, alpha);
    to[1] = over_white(green, alpha);
    to[2] = over_white(blue, alpha);
  }
  pixels.resize(pixels.size() / 4 * 3);
}

void check_pixels(uint32_t width, uint32_t height) {
  if (int64_t{width} * height <= kMaximumDecodedPixels) return;
  throw std::invalid_argument("it has " + std::to_string(width) + " x " + std::to_string(height) +
                              " pixels; at most 89,478,485 are read");
}

RgbImage decoded(wuffs_base__image_decoder& decoder, wuffs_base__image_config& config,
                 wuffs_base__io_buffer& source) {
  const uint32_t width = config.pixcfg.width(), height = config.pixcfg.height();
  RgbImage result{static_cast<int>(width), static_cast<int>(height), {}};
  std::vector<uint8_t>& pixels = result.pixels;
  pixels.resize(size_t{4} * width * height);
  config.pixcfg.set(WUFFS_BASE__PIXEL_FORMAT__BGRA_NONPREMUL, WUFFS_BASE__PIXEL_SUBSAMPLING__NONE,
                    width, height);
  wuffs_base__pixel_buffer buffer;
  check(buffer.set_from_slice(&config.pixcfg,
                              wuffs_base__make_slice_u8(pixels.data(), pixels.size())));
  std::vector<uint8_t> work(decoder.workbuf_len().max_incl);
  check(decoder.decode_frame(&buffer, &source, WUFFS_BASE__PIXEL_BLEND__SRC,
                             wuffs_base__make_slice_u8(work.data(), work.size()), nullptr));
  to_rgb(pixels);
  return result;
}

}  // namespace

bool decodes_images() { return true; }

RgbImage decode_image(std::string_view file) {
  static std::mutex one_large;
  const Decoder decoder = decoder_of(file);
  auto* bytes = reinterpret_cast<uint8_t*>(const_cast<char*>(file.data()));  // which it only reads
  wuffs_base__io_buffer source = wuffs_base__ptr_u8__reader(bytes, file.size(), true);
  wuffs_base__image_config config = wuffs_base__null_image_config();
  check(decoder->decode_image_config(&config, &source));
  const uint32_t width = config.pixcfg.width(), height = config.pixcfg.height();
  check_pixels(width, height);
  check_image_size(width, height);
  std::unique_lock lock(one_large, std::defer_lock);
  if (int64_t{width} * height > kLarge) lock.lock();
  return upright(decoded(*decoder, config, source), orientation_of(file));
}

}  // namespace wherry::app
