#ifndef WHERRY_ENGINE_SUPPORT_MATRIX_UNITS_H_
#define WHERRY_ENGINE_SUPPORT_MATRIX_UNITS_H_

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace wherry {

// Asks the system, once, to let the threads of this process use the tiles of x86's matrix units
// (AMX), which Linux keeps only for processes that ask: Documentation/arch/x86/xstate.rst. Returns
// whether they may; without permission the first tile instruction would end the process.
inline bool allow_matrix_units() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  static const bool allowed = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return allowed;
#else
  return false;
#endif
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_MATRIX_UNITS_H_
