// The images of a request: parts of its prompt, and their pixels.
#ifndef WHERRY_ENGINE_SCHEDULING_IMAGE_SPAN_H_
#define WHERRY_ENGINE_SCHEDULING_IMAGE_SPAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/image_names.h"
#include "model/model.h"
#include "wherry.h"

namespace wherry {

// Consecutive tokens of a prompt whose rows get the features of one tile.
struct ImageSpan {
  int64_t first = 0, rows = 0;  // tokens of the prompt
  ImageDigest digest{};
  std::shared_ptr<const ImageTile> tile;
  int32_t name = 0;  // see ImageNames

  int64_t end() const { return first + rows; }
};

// Checks the images of a request with a prompt of `prompt` tokens. rows: the rows of image features
// that an engine has. Throws WHERRY_INVALID_ARGUMENT with every problem; errors of Model::tower.
void check_images(const wherry_params& params, size_t prompt, const Model& model, int64_t rows);

// Copies the images, without names.
std::vector<ImageSpan> image_spans(const wherry_params& params);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_IMAGE_SPAN_H_
