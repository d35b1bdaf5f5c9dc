// Elementary functions with the same bits on every machine. The C library's results differ between
// machines, and so would tokens.
#ifndef WHERRY_ENGINE_SAMPLING_ELEMENTARY_H_
#define WHERRY_ENGINE_SAMPLING_ELEMENTARY_H_

#include <cstdint>

namespace wherry {

// ln x of a positive finite x; relative error below 1e-14, absolute one below 1e-16 near 1.
double log_double(double x);

// e^x; relative error below 1e-14; 0 for x < -700, infinity for x > 700.
double exp_double(double x);

// x^n by repeated multiplication, n >= 0.
double power(double x, int64_t n);

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_ELEMENTARY_H_
