// glibc has this header from 2.32 on. libstdc++ includes it where it finds it, and then counts
// references without atomic instructions in a process of one thread; built for 2.28, it never does.
#ifndef WHERRY_PACKAGING_SINGLE_THREADED_H_
#define WHERRY_PACKAGING_SINGLE_THREADED_H_

static const char __libc_single_threaded = 0;

#endif  // WHERRY_PACKAGING_SINGLE_THREADED_H_
