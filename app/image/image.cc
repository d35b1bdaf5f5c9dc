#include "app/image/image.h"

#include <stdexcept>

#include "app/image/tile_processor.h"
#include "app/value/json_text.h"

namespace wherry::app {

std::unique_ptr<ImageProcessor> ImageProcessor::create(const json::Value& settings) {
  const json::Value* type = settings.is_dict() ? settings.dict().find("model_type") : nullptr;
  const std::string name = type != nullptr && type->is_string() ? type->text() : "";
  if (name == "idefics3" || name == "smolvlm") return create_tile_processor(settings);
  throw std::invalid_argument("wherry-vision.json has model_type " +
                              (type == nullptr ? "missing" : json::to_json(*type)) +
                              "; images are prepared for idefics3 and smolvlm");
}

void check_image_size(int64_t width, int64_t height) {
  const std::string size =
      "the image has " + std::to_string(width) + " x " + std::to_string(height) + " pixels; ";
  if (width < 1 || height < 1) throw std::invalid_argument(size + "at least 1 x 1 is required");
  if (width > kMaximumImageSide || height > kMaximumImageSide) {
    throw std::invalid_argument(size + "a side may have " + std::to_string(kMaximumImageSide));
  }
  if (width * height > kMaximumImagePixels) {
    throw std::invalid_argument(size + "an image may have " + std::to_string(kMaximumImagePixels));
  }
}

}  // namespace wherry::app
