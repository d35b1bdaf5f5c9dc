/*
 * Stands before the system's libOpenCL (SYSTEM is its path): passes everything on, counts some
 * calls, and loses the device when it is told to, as a driver does whose GPU hung.
 *
 * Every argument of these functions is an integer or a pointer, and there are nine at most: on the
 * ABIs of 64 bits that Linux has, nine words passed on are what was passed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

enum { INVALID_COMMAND_QUEUE = -36 };
typedef long Word;

static atomic_int lost, flushes, kernels;

void stand_in_lose(void) { lost = 1; }
int stand_in_starts(void) { return flushes; }
int stand_in_kernels(void) { return kernels; }

static Word pass(const char* name, Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h,
                 Word i) {
  static void* library;
  if (!library) library = dlopen(SYSTEM, RTLD_NOW | RTLD_LOCAL);
  Word (*real)(Word, Word, Word, Word, Word, Word, Word, Word, Word) =
      (Word(*)(Word, Word, Word, Word, Word, Word, Word, Word, Word))dlsym(library, name);
  return real(a, b, c, d, e, f, g, h, i);
}

#define FORWARD(name, before)                                                                   \
  Word cl##name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i) {       \
    before;                                                                                     \
    return pass("cl" #name, a, b, c, d, e, f, g, h, i);                                         \
  }
#define UNLESS_LOST if (lost) return INVALID_COMMAND_QUEUE

FORWARD(GetPlatformIDs, )
FORWARD(GetDeviceIDs, )
FORWARD(GetDeviceInfo, )
FORWARD(CreateContext, )
FORWARD(CreateCommandQueue, )
FORWARD(CreateBuffer, )
FORWARD(ReleaseMemObject, )
FORWARD(CreateProgramWithSource, )
FORWARD(CreateProgramWithBinary, )
FORWARD(BuildProgram, )
FORWARD(GetProgramInfo, )
FORWARD(GetProgramBuildInfo, )
FORWARD(ReleaseProgram, )
FORWARD(SetKernelArg, )
FORWARD(ReleaseEvent, )
FORWARD(CreateKernel, ++kernels)
FORWARD(ReleaseKernel, --kernels)
FORWARD(Flush, ++flushes; UNLESS_LOST)
FORWARD(Finish, UNLESS_LOST)
FORWARD(WaitForEvents, UNLESS_LOST)
FORWARD(EnqueueReadBuffer, UNLESS_LOST)
FORWARD(EnqueueWriteBuffer, UNLESS_LOST)
FORWARD(EnqueueCopyBuffer, UNLESS_LOST)
FORWARD(EnqueueNDRangeKernel, UNLESS_LOST)
