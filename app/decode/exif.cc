#include "app/decode/exif.h"

#include <cstring>
#include <utility>

namespace wherry::app {

namespace {

constexpr uint64_t kOrientation = 0x0112;  // the tag, whose value is a SHORT (3)
constexpr uint64_t kShort = 3;
constexpr std::string_view kExif("Exif\0\0", 6);
constexpr std::string_view kPng("\x89PNG\r\n\x1a\n", 8);

// Returns the number of `size` bytes at a place; 0 beyond the end.
uint64_t number_at(std::string_view bytes, size_t at, size_t size, bool little = false) {
  if (at > bytes.size() || bytes.size() - at < size) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t from = little ? at + size - 1 - i : at + i;
    value = value << 8 | static_cast<uint8_t>(bytes[from]);
  }
  return value;
}

// Returns the orientation in TIFF's first directory, of which EXIF data consist; 1 if it has none.
int orientation_in(std::string_view tiff) {
  const std::string_view order = tiff.substr(0, 2);
  if (order != "II" && order != "MM") return 1;
  const bool little = order == "II";
  const size_t directory = number_at(tiff, 4, 4, little);
  const size_t entries = number_at(tiff, directory, 2, little);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at >= tiff.size()) break;
    if (number_at(tiff, at, 2, little) != kOrientation) continue;
    const bool known = number_at(tiff, at + 2, 2, little) == kShort;
    const uint64_t value = known ? number_at(tiff, at + 8, 2, little) : 1;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// Returns the EXIF data of a JPEG, after "Exif\0\0".
std::string_view exif_of_jpeg(std::string_view file) {
  for (size_t at = 2; at + 4 <= file.size() && static_cast<uint8_t>(file[at]) == 0xFF;) {
    const auto marker = static_cast<uint8_t>(file[at + 1]);
    if (marker == 0xFF) {  // fill bytes
      ++at;
      continue;
    }
    if (marker == 0xDA) break;  // pixels
    const size_t size = number_at(file, at + 2, 2);
    if (size < 2) break;
    const std::string_view segment = file.substr(at + 4, size - 2);
    if (marker == 0xE1 && segment.substr(0, kExif.size()) == kExif) {
      return segment.substr(kExif.size());
    }
    at += 2 + size;
  }
  return {};
}

std::string_view exif_of_png(std::string_view file) {
  for (size_t at = kPng.size(); at + 12 <= file.size();) {
    const size_t size = number_at(file, at, 4);
    if (file.substr(at + 4, 4) == "eXIf") return file.substr(at + 8, size);
    at += 12 + size;
  }
  return {};
}

}  // namespace

int orientation_of(std::string_view file) {
  if (file.substr(0, 2) == "\xFF\xD8") return orientation_in(exif_of_jpeg(file));
  if (file.substr(0, kPng.size()) == kPng) return orientation_in(exif_of_png(file));
  return 1;
}

RgbImage upright(RgbImage image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool transposed = orientation >= 5;
  const bool mirrored =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flipped = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  RgbImage result{transposed ? image.height : image.width, transposed ? image.width : image.height,
                  std::vector<uint8_t>(image.pixels.size())};
  uint8_t* to = result.pixels.data();
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x, to += 3) {
      int column = transposed ? y : x, row = transposed ? x : y;
      if (mirrored) column = image.width - 1 - column;
      if (flipped) row = image.height - 1 - row;
      const size_t from =
          static_cast<size_t>(row) * static_cast<size_t>(image.width) + static_cast<size_t>(column);
      std::memcpy(to, image.pixels.data() + 3 * from, 3);
    }
  }
  return result;
}

}  // namespace wherry::app
