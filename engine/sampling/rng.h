// The random number generator of sampling: SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014), used as a function of (seed, index). It has no
// state: the i-th token of a request draws number i, whatever else is in the batch and on whichever
// platform.
#ifndef WHERRY_ENGINE_SAMPLING_RNG_H_
#define WHERRY_ENGINE_SAMPLING_RNG_H_

#include <cstdint>

namespace wherry {

inline uint64_t splitmix64_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Returns output `index` (from 0) of SplitMix64 seeded with `state`.
inline uint64_t splitmix64(uint64_t state, uint64_t index) {
  return splitmix64_mix(state + (index + 1) * 0x9E3779B97F4A7C15u);
}

// Independent streams of random numbers of one seed.
enum class Stream : uint64_t {
  kToken = 0,    // the random number that draws a token
  kExclude = 1,  // the random number that decides whether XTC acts
};

// Returns a number that is uniform in [0, 1): the upper 53 bits. The seed is mixed first, because
// seeds that differ by the generator's increment would otherwise give the same numbers, shifted by
// one.
inline double uniform(uint64_t seed, uint64_t index, Stream stream = Stream::kToken) {
  uint64_t state = splitmix64(seed, static_cast<uint64_t>(stream));
  return static_cast<double>(splitmix64(state, index) >> 11) * 0x1p-53;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_SAMPLING_RNG_H_
