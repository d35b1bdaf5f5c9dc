#include "scheduling/image_span.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "support/error.h"

namespace wherry {

namespace {

constexpr size_t kLevels = 3 * 256;

size_t taps_of(const wherry_image& image) { return image.taps == 0 ? 1 : image.taps; }
size_t features_of(const wherry_image& image) {
  return image.features == 0 ? image.rows : image.features;
}

bool all_finite(const float* values, size_t n) {
  return std::all_of(values, values + n, [](float value) { return std::isfinite(value); });
}

void check_not_negative(const int32_t* values, size_t n, const std::string& has,
                        Problems& problems) {
  const int32_t* negative = std::find_if(values, values + n, [](int32_t v) { return v < 0; });
  if (negative != values + n) problems.add(has, *negative, "; accepted is >= 0");
}

// Checks that an array is there if and only if the tower takes it.
bool check_given(bool given, bool takes, const std::string& array, Problems& problems) {
  if (given != takes) {
    problems.add(array,
                 given ? " are given; the tower takes none" : " is null; the tower takes it");
  }
  return given && takes;
}

void check_places(const wherry_image& image, const std::string& where, const TowerSpec& tower,
                  Problems& problems) {
  const size_t n = image.n_patches, taps = taps_of(image);
  if (check_given(image.positions != nullptr, tower.taps > 0, where + ": positions", problems)) {
    if (taps != static_cast<size_t>(tower.taps)) {
      problems.add(where, " has ", taps, " positions for a patch (taps); the tower takes ",
                   tower.taps);
      return;
    }
    check_not_negative(image.positions, n * taps, where + " has the position ", problems);
  }
  if (check_given(image.position_weights != nullptr, tower.position_weights,
                  where + ": position_weights", problems) &&
      !all_finite(image.position_weights, n * taps)) {
    problems.add(where, " has position_weights that are not finite");
  }
  if (check_given(image.coordinates != nullptr, tower.coordinates, where + ": coordinates",
                  problems)) {
    check_not_negative(image.coordinates, 2 * n, where + " has the coordinate ", problems);
  }
}

void check_tile(const wherry_image& image, const std::string& where, const TowerSpec& tower,
                Problems& problems) {
  const auto per_row = static_cast<size_t>(tower.patches_per_row);
  const size_t features = features_of(image);
  if (image.patches == nullptr || image.levels == nullptr) {
    problems.add(where, ": patches or levels is null");
    return;
  }
  if (image.n_patches % per_row != 0 || image.n_patches / per_row != features) {
    problems.add(where, " has ", features, " rows and ", image.n_patches,
                 " patches; the tower makes a row of ", per_row);
    return;
  }
  if (image.rows > features || image.first_feature > features - image.rows) {
    problems.add(where, " shows the rows ", image.first_feature, " to ",
                 image.first_feature + image.rows, " of a tile that has ", features);
  }
  if (image.patch_bytes != static_cast<size_t>(tower.patch)) {
    problems.add(where, " has patches of ", image.patch_bytes, " bytes; the tower takes ",
                 tower.patch);
  }
  if (!all_finite(image.levels, kLevels)) problems.add(where, " has levels that are not finite");
  check_places(image, where, tower, problems);
}

// Checks the bounds of the engine, and of models whose images must be computed in one step.
void check_bounds(const wherry_image& image, const std::string& where, const ImageLimits& limits,
                  bool in_one_step, bool prompt_logprobs, Problems& problems) {
  const size_t features = features_of(image);
  if (features > static_cast<size_t>(limits.features)) {
    problems.add(where, " has ", features, " rows; the engine has memory for ", limits.features,
                 " (image_rows)");
  }
  if (!in_one_step) return;
  if (image.rows > static_cast<size_t>(limits.step_rows)) {
    problems.add(where, " has ", image.rows, " rows, which attend to each other, so that one step ",
                 "must compute all; the engine's steps have ", limits.step_rows,
                 ": give prefill_chunk of at least ", image.rows, ", or a smaller image");
  }
  if (prompt_logprobs && image.rows > static_cast<size_t>(limits.step_results)) {
    problems.add(where, " has ", image.rows, " rows that one step must compute; it has logits of ",
                 limits.step_results, " rows: give no prompt_logprobs, or a smaller image");
  }
}

void check_grid(const wherry_image& image, const std::string& where, Problems& problems) {
  const size_t rows = image.grid_rows, columns = image.grid_columns;
  if (rows == 0 && columns == 0) return;
  if (rows == 0 || columns == 0 || image.rows % rows != 0 || image.rows / rows != columns) {
    problems.add(where, " has ", image.rows, " rows, and a grid of ", rows, " x ", columns);
  }
}

}  // namespace

void check_images(const wherry_params& params, size_t prompt, const Model& model,
                  const ImageLimits& limits) {
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
  const bool in_one_step = metadata.takes("last_visible");
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
    check_bounds(image, where, limits, in_one_step, params.prompt_logprobs >= 0, problems);
    check_grid(image, where, problems);
    check_tile(image, where, tower, problems);
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, title);
}

namespace {

std::shared_ptr<const ImageTile> tile_of(const wherry_image& image) {
  auto tile = std::make_shared<ImageTile>();
  const size_t n = image.n_patches, tapped = n * taps_of(image);
  auto copy = [](auto& to, const auto* from, size_t count) {
    if (from != nullptr) to.assign(from, from + count);
  };
  tile->n = static_cast<int64_t>(n);
  copy(tile->patches, image.patches, n * image.patch_bytes);
  copy(tile->levels, image.levels, kLevels);
  copy(tile->positions, image.positions, tapped);
  copy(tile->position_weights, image.position_weights, tapped);
  copy(tile->coordinates, image.coordinates, 2 * n);
  return tile;
}

}  // namespace

int64_t ImageSpan::delta_after() const {
  const bool text = grid_columns == 0;
  return rope_delta + (text ? 0 : std::max(grid_rows, grid_columns) - rows);
}

std::vector<ImageSpan> image_spans(const wherry_params& params) {
  std::vector<ImageSpan> spans;
  std::map<std::pair<ImageDigest, size_t>, std::shared_ptr<const ImageTile>> tiles;
  int64_t delta = 0;
  for (size_t i = 0; i < params.n_images; ++i) {
    const wherry_image& image = params.images[i];
    ImageSpan span;
    span.first = static_cast<int64_t>(image.first);
    span.rows = static_cast<int64_t>(image.rows);
    std::copy(std::begin(image.digest), std::end(image.digest), span.digest.begin());
    std::shared_ptr<const ImageTile>& tile = tiles[{span.digest, image.n_patches}];
    if (tile == nullptr) tile = tile_of(image);
    span.tile = tile;
    span.first_feature = static_cast<int64_t>(image.first_feature);
    span.features = static_cast<int64_t>(features_of(image));
    span.grid_rows = static_cast<int64_t>(image.grid_rows);
    span.grid_columns = static_cast<int64_t>(image.grid_columns);
    span.rope_delta = delta;
    delta = span.delta_after();
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace wherry
