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

// Consecutive tokens of a prompt whose rows get features of one tile.
struct ImageSpan {
  int64_t first = 0, rows = 0;  // tokens of the prompt
  ImageDigest digest{};         // of the tile
  std::shared_ptr<const ImageTile> tile;
  int64_t first_feature = 0;                // the span's first row of the tile's features
  int64_t features = 0;                     // rows of features of the tile
  int64_t grid_rows = 0, grid_columns = 0;  // places of the rows on the axes of M-RoPE; 0: as text
  // What M-RoPE adds to the index of the span's first token, as of the text before it: <= 0.
  int64_t rope_delta = 0;
  int32_t name = 0;       // of the span, for the prefix cache; see ImageNames
  int32_t tile_name = 0;  // of the complete tile, for the store of features

  int64_t end() const { return first + rows; }
  // Returns what M-RoPE adds to the indices of tokens after the span.
  int64_t delta_after() const;
};

// Bounds of an engine on the images of a request.
struct ImageLimits {
  int64_t features = 0;      // rows of image features in memory
  int64_t step_rows = 0;     // rows of one step
  int64_t step_results = 0;  // rows of one step whose logits are read
};

// Checks the images of a request with a prompt of `prompt` tokens. Throws WHERRY_INVALID_ARGUMENT
// with every problem; errors of Model::tower.
void check_images(const wherry_params& params, size_t prompt, const Model& model,
                  const ImageLimits& limits);

// Copies the images, without names. Parts of one tile share its pixels.
std::vector<ImageSpan> image_spans(const wherry_params& params);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_IMAGE_SPAN_H_
