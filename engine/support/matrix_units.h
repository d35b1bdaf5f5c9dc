#ifndef WHERRY_ENGINE_SUPPORT_MATRIX_UNITS_H_
#define WHERRY_ENGINE_SUPPORT_MATRIX_UNITS_H_

#if defined(__linux__) && defined(__x86_64__) && !defined(__ANDROID__)
#define WHERRY_MATRIX_UNITS
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace wherry {

#ifdef WHERRY_MATRIX_UNITS
// Returns whether the CPU has the tiles of AMX: bit 24 of EDX in CPUID's leaf 7.
inline bool has_matrix_units() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1u << 24) != 0;
}

// Asks the system, once, to let the threads of this process use the tiles of x86's matrix units
// (AMX), which Linux keeps only for processes that ask: Documentation/arch/x86/xstate.rst. Returns
// whether they may; without permission the first tile instruction would end the process.
inline bool allow_matrix_units() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  static const bool allowed =
      has_matrix_units() && syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return allowed;
}
#else
inline bool allow_matrix_units() { return false; }
#endif

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_MATRIX_UNITS_H_
