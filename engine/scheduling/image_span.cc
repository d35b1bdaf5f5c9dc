#include "scheduling/image_span.h"

#include <algorithm>
#include <cmath>

#include "support/error.h"

namespace wherry {

namespace {

constexpr size_t kLevels = 3 * 256;

void check_tile(const wherry_image& image, const std::string& where, const TowerSpec& tower,
                Problems& problems) {
  const auto per_row = static_cast<size_t>(tower.patches_per_row);
  if (image.patches == nullptr || image.levels == nullptr || image.positions == nullptr) {
    problems.add(where, ": patches, levels or positions is null");
    return;
  }
  if (image.n_patches % per_row != 0 || image.n_patches / per_row != image.rows) {
    problems.add(where, " has ", image.rows, " rows and ", image.n_patches,
                 " patches; the tower makes a row of ", per_row);
  }
  if (image.patch_bytes != static_cast<size_t>(tower.patch)) {
    problems.add(where, " has patches of ", image.patch_bytes, " bytes; the tower takes ",
                 tower.patch);
  }
  auto finite = [](float level) { return std::isfinite(level); };
  if (!std::all_of(image.levels, image.levels + kLevels, finite)) {
    problems.add(where, " has levels that are not finite");
  }
  const int32_t* end = image.positions + image.n_patches;
  const int32_t* negative = std::find_if(image.positions, end, [](int32_t p) { return p < 0; });
  if (negative != end) problems.add(where, " has the position ", *negative, "; accepted is >= 0");
}

}  // namespace

void check_images(const wherry_params& params, size_t prompt, const Model& model, int64_t rows) {
  if (params.n_images == 0) return;
  const Metadata& metadata = model.metadata();
  Problems problems;
  if (metadata.image_features == 0) problems.add(metadata.name, " takes no images");
  if (metadata.bidirectional) {
    problems.add(metadata.name, " reads a prompt in one step, and with it no images");
  }
  if (params.images == nullptr) problems.add("images is null");
  const std::string title = "the images cannot be used";
  problems.raise(WHERRY_INVALID_ARGUMENT, title);
  const TowerSpec tower = model.tower();
  size_t end = 0;
  for (size_t i = 0; i < params.n_images; ++i) {
    const wherry_image& image = params.images[i];
    const std::string where = concat("images[", i, "]");
    if (image.first < end) {
      problems.add(where, " begins with token ", image.first,
                   ", before the end of the image before");
    }
    if (image.rows == 0 || image.first > prompt || image.rows > prompt - image.first) {
      problems.add(where, " has the tokens ", image.first, " to ", image.first + image.rows,
                   "; the prompt has ", prompt);
      continue;
    }
    end = image.first + image.rows;
    if (image.rows > static_cast<size_t>(rows)) {
      problems.add(where, " has ", image.rows, " rows; the engine has memory for ", rows,
                   " (image_rows)");
    }
    check_tile(image, where, tower, problems);
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, title);
}

std::vector<ImageSpan> image_spans(const wherry_params& params) {
  std::vector<ImageSpan> spans;
  for (size_t i = 0; i < params.n_images; ++i) {
    const wherry_image& image = params.images[i];
    auto tile = std::make_shared<ImageTile>();
    tile->patches.assign(image.patches, image.patches + image.n_patches * image.patch_bytes);
    tile->levels.assign(image.levels, image.levels + kLevels);
    tile->positions.assign(image.positions, image.positions + image.n_patches);
    ImageSpan span;
    span.first = static_cast<int64_t>(image.first);
    span.rows = static_cast<int64_t>(image.rows);
    std::copy(std::begin(image.digest), std::end(image.digest), span.digest.begin());
    span.tile = std::move(tile);
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace wherry
