#include "app/image/positions.h"

#include <algorithm>
#include <cmath>

namespace wherry::app {
namespace {

struct Tap {
  int index;  // on an axis of the table
  float weight;
};

using AxisTaps = std::vector<std::vector<Tap>>;  // of each row, or column, of a grid

AxisTaps corner_taps(int count, int side) {
  AxisTaps result;
  for (int i = 0; i < count; ++i) {
    const float scaled = static_cast<float>(i) * static_cast<float>(side - 1);
    const float place = scaled / static_cast<float>(std::max(count - 1, 1));
    const float first = std::floor(place), fraction = place - first;
    const int index = std::min(static_cast<int>(first), side - 1);
    const float weight = 1 - fraction;
    result.push_back({{index, weight}, {std::min(index + 1, side - 1), 1 - weight}});
  }
  return result;
}

// The scheme of resize.cc's windows, in float32 as torch computes it.
AxisTaps antialias_taps(int count, int side) {
  const float scale = static_cast<float>(side) / static_cast<float>(count);
  const float support = std::max(scale, 1.0F), narrowing = 1.0F / support;
  AxisTaps result;
  for (int i = 0; i < count; ++i) {
    const float center = scale * (static_cast<float>(i) + 0.5F);
    const int first = std::max(static_cast<int>(center - support + 0.5F), 0);
    const int end = std::min(static_cast<int>(center + support + 0.5F), side);
    std::vector<Tap>& taps = result.emplace_back();
    float sum = 0;
    for (int j = first; j < end; ++j) {
      const float distance = std::abs((static_cast<float>(j) - center + 0.5F) * narrowing);
      taps.push_back({j, std::max(0.0F, 1.0F - distance)});
      sum += taps.back().weight;
    }
    for (Tap& tap : taps) tap.weight /= sum;
  }
  return result;
}

// Sets `taps` rows of the table for each patch: the products of those on the axes, by row, then by
// column, and rows of weight 0 after them.
void set_positions(Tile& tile, const AxisTaps& rows, const AxisTaps& columns, int side,
                   int64_t taps) {
  tile.taps = taps;
  const auto size = static_cast<size_t>(tile.patch_count * taps);
  tile.positions.reserve(size);
  tile.position_weights.reserve(size);
  for (size_t i = 0; i < tile.coordinates.size(); i += 2) {
    for (const Tap& row : rows[static_cast<size_t>(tile.coordinates[i])]) {
      for (const Tap& column : columns[static_cast<size_t>(tile.coordinates[i + 1])]) {
        tile.positions.push_back(row.index * side + column.index);
        tile.position_weights.push_back(row.weight * column.weight);
      }
    }
    tile.positions.resize((i / 2 + 1) * static_cast<size_t>(taps), 0);
    tile.position_weights.resize((i / 2 + 1) * static_cast<size_t>(taps), 0);
  }
}

}  // namespace

void use_places(Tile& tile, const PatchGrid& grid) {
  tile.positions.reserve(static_cast<size_t>(tile.patch_count));
  for (size_t i = 0; i < tile.coordinates.size(); i += 2) {
    tile.positions.push_back(tile.coordinates[i] * grid.columns + tile.coordinates[i + 1]);
  }
}

void interpolate_corners(Tile& tile, const PatchGrid& grid, int side) {
  set_positions(tile, corner_taps(grid.rows, side), corner_taps(grid.columns, side), side, 4);
}

void interpolate_antialias(Tile& tile, const PatchGrid& grid, int side, int64_t taps) {
  set_positions(tile, antialias_taps(grid.rows, side), antialias_taps(grid.columns, side), side,
                taps);
}

int64_t maximum_taps(int side, int block, int64_t blocks) {
  const int last = side / block + 1;  // from here on, the filter has the width of one patch
  std::vector<int64_t> widths(last + 1);
  for (int n = 1; n <= last; ++n) {
    for (const std::vector<Tap>& taps : antialias_taps(n * block, side)) {
      widths[n] = std::max(widths[n], static_cast<int64_t>(taps.size()));
    }
  }
  int64_t result = 0;
  for (int n = 1; n <= last; ++n) {
    const int64_t others = std::min<int64_t>((blocks + n - 1) / n, last);
    const int64_t widest = *std::max_element(widths.begin() + others, widths.end());
    result = std::max(result, widths[n] * widest);
  }
  return result;
}

}  // namespace wherry::app
