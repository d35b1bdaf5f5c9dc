/* python.exe, for a folder that has Windows' python311.dll and no program for it (wine.py). */
#include <windows.h>

int wmain(int argc, wchar_t** argv) {
  HMODULE python = LoadLibraryW(L"python311.dll");
  if (python == NULL) return 127;
  return ((int (*)(int, wchar_t**))GetProcAddress(python, "Py_Main"))(argc, argv);
}
