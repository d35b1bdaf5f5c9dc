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
// Qwen 3-VL, Qwen 3.5: one tile of about the image's own size and aspect.
std::unique_ptr<ImageProcessor> create_qwen_processor(const json::Value& settings);
// Mistral 3 and Pixtral: one tile of the image's own size, up to a longest edge; a span a line.
std::unique_ptr<ImageProcessor> create_pixtral_processor(const json::Value& settings);
// Gemma 3: one square tile.
std::unique_ptr<ImageProcessor> create_gemma_processor(const json::Value& settings);
// LFM2-VL: one tile of about the image's own size, or several square ones and a thumbnail.
std::unique_ptr<ImageProcessor> create_lfm_processor(const json::Value& settings);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_PROCESSORS_H_
