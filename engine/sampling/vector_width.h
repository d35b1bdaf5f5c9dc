// Defines WHERRY_EACH_WIDTH, which compiles a function with a loop over the vocabulary once for
// each vector width; the loader chooses the machine's width. Where the C library has no indirect
// functions, only the narrowest version exists. The same holds under the sanitizers, whose runtime
// is not ready when the loader chooses.
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
