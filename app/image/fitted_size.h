// Sizes that keep an image's aspect, in multiples of a factor and bounds of the area.
#ifndef WHERRY_APP_IMAGE_FITTED_SIZE_H_
#define WHERRY_APP_IMAGE_FITTED_SIZE_H_

namespace wherry::app {

struct Size {
  int width, height;
};

// Rounds to a multiple of the factor as Python's round does, halves to even.
int nearest_multiple(int pixels, int factor);

struct AreaBounds {
  int factor;                       // of both sides
  int smallest_side;                // before the bounds: 0, or the factor
  int smallest_area, largest_area;  // pixels
};

// Returns transformers' smart_resize of Qwen2-VL and LFM2-VL: its operations in double precision,
// since their rounding decides a multiple. A thin image may exceed the largest area.
Size fitted_size(Size image, const AreaBounds& bounds);

}  // namespace wherry::app

#endif  // WHERRY_APP_IMAGE_FITTED_SIZE_H_
