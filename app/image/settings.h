// Reads wherry-vision.json: what all image processors have in common.
#ifndef WHERRY_APP_IMAGE_SETTINGS_H_
#define WHERRY_APP_IMAGE_SETTINGS_H_

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "app/image/image.h"
#include "app/image/resize.h"
#include "app/value/value.h"

namespace wherry::app {

// Pixels of a resized image that settings may ask for: twice those of published Qwen 3-VL.
constexpr int kLargestArea = 1 << 25;

// Reads fields and collects what does not fit; a field that does not is read as a value that does.
class SettingsReader {
 public:
  using Path = std::initializer_list<const char*>;  // such as {"processor", "size"}

  explicit SettingsReader(const json::Value& settings) : settings_(settings) {}

  // Returns the value at a path; null, as in Python, is an absent one.
  const json::Value* find(Path path) const;
  void refuse(Path path, const std::string& accepted);
  int integer(Path path, int minimum, int maximum);
  // Reads an integer that other settings decide; reason: ", of image_size", say.
  void expect(Path path, int value, const std::string& reason);
  bool boolean(Path path);
  double number(Path path);
  std::array<double, 3> channels(Path path);
  std::string text(Path path);
  // Refuses an object that has other fields, such as a size in another form.
  void expect_fields(Path path, std::initializer_list<std::string_view> names);
  // Throws std::invalid_argument that lists all mismatches.
  void finish() const;

 private:
  const json::Value& settings_;
  std::vector<std::string> problems_;
};

// How the levels of pixels become values: the same fields in every image processor.
struct PixelSettings {
  Filter filter;
  Levels levels;
};

// Reads them, and refuses fields of the processor that nothing reads.
// classes: names of transformers, also with Fast or Pil; own: the fields of this kind.
PixelSettings read_pixels(SettingsReader& reader, std::initializer_list<std::string_view> classes,
                          std::initializer_list<std::string_view> own);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_SETTINGS_H_
