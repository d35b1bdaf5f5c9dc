// Elementary functions with the same bits on every machine. The C library's results differ between
// machines, and so would sampled tokens.
#ifndef WHERRY_ENGINE_SAMPLING_ELEMENTARY_H_
#define WHERRY_ENGINE_SAMPLING_ELEMENTARY_H_

#include <cstdint>

namespace wherry {

// Returns ln x of a positive finite x. The relative error is below 1e-14, near 1 the absolute error
// is below 1e-16.
double log_double(double x);

// Returns e^x with a relative error below 1e-14; 0 for x < -700, infinity for x > 700.
double exp_double(double x);

// Returns x^n for n >= 0 by repeated multiplication.
double power(double x, int64_t n);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_ELEMENTARY_H_
