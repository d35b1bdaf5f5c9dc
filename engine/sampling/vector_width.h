// WHERRY_EACH_WIDTH before a loop over the vocabulary compiles it once for each width of vector;
// the loader takes the machine's. Where the C library cannot choose (it needs indirect functions),
// there is the least of them; so under the sanitizers, whose run time is not there yet when it
// chooses.
#ifndef WHERRY_ENGINE_SAMPLING_VECTOR_WIDTH_H_
#define WHERRY_ENGINE_SAMPLING_VECTOR_WIDTH_H_

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#if defined(__has_attribute)
#if __has_attribute(target_clones)
#define WHERRY_EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#endif
#ifndef WHERRY_EACH_WIDTH
#define WHERRY_EACH_WIDTH
#endif

#endif  // WHERRY_ENGINE_SAMPLING_VECTOR_WIDTH_H_
