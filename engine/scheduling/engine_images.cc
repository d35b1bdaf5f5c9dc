// The images of requests: their checks, and the end of a step of the tower.
#include <algorithm>

#include "scheduling/engine.h"
#include "support/error.h"

namespace wherry {

// Copies the images of a request, after checks.
std::vector<ImageSpan> Engine::checked_images(const wherry_params& params, size_t prompt) const {
  const Metadata& metadata = model_->metadata();
  const int64_t rows = config_.prefill_chunk;
  check_images(params, prompt, *model_,
               {config_.image_rows, rows, std::min(metadata.logit_rows, rows)});
  std::vector<ImageSpan> images = image_spans(params);
  // Layers with a window have few pages; where one step must compute an image, they must hold it.
  if (!metadata.takes("last_visible")) return images;
  Problems problems;
  for (const ImageSpan& image : images) {
    const int64_t most = cache_.most_rows(image.first);
    if (image.rows <= most) continue;
    problems.add("an image has ", image.rows, " rows, which one step must compute; the pages of ",
                 "layers with a window hold ", most, ": give more kv_tokens or max_batch");
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, "the images cannot be used");
  return images;
}

// The features stay if the request was aborted: other requests may have the same image.
void Engine::accept_image(const PlannedRows& entry) {
  images_.complete(entry.image->tile_name);
  ++stats_.images_encoded;
  if (entry.request->aborted) finish_without_token(*entry.request, WHERRY_ABORTED);
}

}  // namespace wherry
