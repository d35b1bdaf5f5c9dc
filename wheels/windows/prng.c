/* Windows' bcryptprimitives.dll, which Wine 8 lacks and packages written in Rust take (wine.py). */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID to, ULONG bytes); /* of advapi32: random bytes */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T bytes) {
  return SystemFunction036(to, (ULONG)bytes);
}
