// What a model that reads images does with them before the core gets a request.
#ifndef WHERRY_APP_CHAT_VISION_H_
#define WHERRY_APP_CHAT_VISION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/image/image.h"

namespace wherry::app {

struct Vision {
  // Null in programs that cannot decode image files; they refuse images.
  std::unique_ptr<const ImageProcessor> processor;
  int32_t token = -1;  // id of the token that stands for a row of features
  // Decodes an image file. Throws std::invalid_argument with the reason why it cannot be read.
  std::function<RgbImage(std::string_view file)> decode;
};

// Returns what a model does with images, without a decoder.
// settings: wherry-vision.json. id_of: returns the id of a token, or -1. Throws Error.
std::unique_ptr<Vision> read_vision(const json::Value& settings,
                                    const std::function<int64_t(const std::string& token)>& id_of);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_VISION_H_
