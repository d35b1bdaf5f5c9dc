// The processors of images, one for each way in which models take them.
//
// Their results are those of transformers' classes on Pillow (Idefics3ImageProcessorPil and
// others). Its classes on torchvision, the default where torchvision is installed, have the same
// sizes, tiles and prompts; torch's filters have coarser weights, so that about 1% of the levels
// differ after a resize, by 1, rarely by 2.
#ifndef WHERRY_APP_IMAGE_PROCESSORS_H_
#define WHERRY_APP_IMAGE_PROCESSORS_H_

#include <memory>

#include "app/image/image.h"

namespace wherry::app {

// settings: wherry-vision.json. Each throws std::invalid_argument that lists all mismatches.

// Idefics3 and SmolVLM: square tiles of an image, and last the image as one tile.
std::unique_ptr<ImageProcessor> create_tile_processor(const json::Value& settings);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_PROCESSORS_H_
