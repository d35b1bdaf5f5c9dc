// What the static libstdc++ takes of a newer glibc than 2.28. False: it then always counts references
// with atomic instructions.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
