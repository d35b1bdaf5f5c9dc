// The scheme is that of Pillow's documentation ("Filters") and of its results: a separable
// convolution whose kernel is as wide as the filter's support, times the scale where it shrinks.
// The weights of an output pixel sum to 1, and are rounded to 22 bits after the point; rows are
// resized first; each pass rounds to 8 bits, to nearest.
#include "app/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace wherry::app {
namespace {

constexpr int kChannels = 3;
constexpr int kFraction = 22;  // bits: 32 less 8 of a level and 2 for sums beyond [0, 255]
constexpr double kPi = 3.14159265358979323846;

struct Kernel {
  double support;              // the filter is 0 beyond +-support
  double (*weight)(double x);  // x in pixels of the smaller of the two images
};

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Keys' cubic with a = -0.5.
double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double sinc(double x) { return x == 0.0 ? 1.0 : std::sin(x * kPi) / (x * kPi); }

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return {0.5, box};
    case Filter::kBilinear:
      return {1.0, bilinear};
    case Filter::kBicubic:
      return {2.0, bicubic};
    case Filter::kLanczos:
      break;
  }
  return {3.0, lanczos};
}

// The input pixels of one output pixel: `count` from `first`, with weights from `weights`.
struct Window {
  int first, count;
  size_t weights;
};

struct Windows {
  std::vector<Window> windows;   // one per output pixel
  std::vector<int32_t> weights;  // in units of 2^-kFraction
};

Windows windows_of(int input, int output, const Kernel& kernel) {
  const double scale = static_cast<double>(input) / output;
  const double widening = std::max(scale, 1.0);
  const double support = kernel.support * widening, narrowing = 1.0 / widening;
  Windows result;
  std::vector<double> weights;
  for (int i = 0; i < output; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(input, static_cast<int>(center + support + 0.5));
    weights.clear();
    double sum = 0.0;
    for (int j = first; j < end; ++j) {
      weights.push_back(kernel.weight((j - center + 0.5) * narrowing));
      sum += weights.back();
    }
    result.windows.push_back({first, end - first, result.weights.size()});
    for (const double weight : weights) {
      const double scaled = weight / sum * (1 << kFraction);
      result.weights.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  return result;
}

uint8_t level_of(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kFraction, 0, 255)); }

constexpr int32_t kHalf = 1 << (kFraction - 1);

// Resizes the rows [first, end) of an image to a width.
RgbImage resized_rows(const RgbImage& image, int first, int end, const Windows& columns) {
  RgbImage result;
  result.width = static_cast<int>(columns.windows.size());
  result.height = end - first;
  result.pixels.resize(static_cast<size_t>(result.width) * result.height * kChannels);
  uint8_t* output = result.pixels.data();
  for (int y = first; y < end; ++y) {
    const uint8_t* row = &image.pixels[static_cast<size_t>(y) * image.width * kChannels];
    for (const Window& window : columns.windows) {
      const uint8_t* pixel = row + static_cast<size_t>(window.first) * kChannels;
      const int32_t* weights = &columns.weights[window.weights];
      int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (int i = 0; i < window.count; ++i, pixel += kChannels) {
        red += weights[i] * pixel[0];
        green += weights[i] * pixel[1];
        blue += weights[i] * pixel[2];
      }
      *output++ = level_of(red);
      *output++ = level_of(green);
      *output++ = level_of(blue);
    }
  }
  return result;
}

// Resizes an image to a height. first: the row of the windows that is the image's row 0.
RgbImage resized_columns(const RgbImage& image, int first, const Windows& rows) {
  RgbImage result;
  result.width = image.width;
  result.height = static_cast<int>(rows.windows.size());
  const size_t width = static_cast<size_t>(image.width) * kChannels;  // bytes of a row
  result.pixels.resize(width * result.height);
  uint8_t* output = result.pixels.data();
  std::vector<int32_t> sums(width);
  for (const Window& window : rows.windows) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int i = 0; i < window.count; ++i) {
      const uint8_t* row = &image.pixels[(window.first - first + i) * width];
      const int32_t weight = rows.weights[window.weights + i];
      for (size_t x = 0; x < width; ++x) sums[x] += weight * row[x];
    }
    output = std::transform(sums.begin(), sums.end(), output, level_of);
  }
  return result;
}

}  // namespace

RgbImage resize(const RgbImage& image, int width, int height, Filter filter) {
  const Kernel kernel = kernel_of(filter);
  // A pass that keeps its size would keep the pixels, too: filters are 1 at 0 and 0 at integers.
  const bool rows_change = width != image.width, columns_change = height != image.height;
  if (!rows_change && !columns_change) return image;
  if (!columns_change) {
    return resized_rows(image, 0, height, windows_of(image.width, width, kernel));
  }
  const Windows rows = windows_of(image.height, height, kernel);
  if (!rows_change) return resized_columns(image, 0, rows);
  const Windows columns = windows_of(image.width, width, kernel);
  // The order decides roundings. This one is of Pillow 13; before, rows were always first.
  const int64_t fewer_rows = image.height - height, fewer_columns = image.width - width;
  if (fewer_rows > 0 && fewer_rows > 2 * fewer_columns) {
    return resized_rows(resized_columns(image, 0, rows), 0, height, columns);
  }
  const int first = rows.windows.front().first;
  const int end = rows.windows.back().first + rows.windows.back().count;
  return resized_columns(resized_rows(image, first, end, columns), first, rows);
}

}  // namespace wherry::app
