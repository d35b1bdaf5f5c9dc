# Windows x64, by zig's Clang, which has MinGW's headers of Windows and the lists of its libraries'
# symbols. The C library is Windows' own (UCRT).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(WHERRY_ZIG_TARGET x86_64-windows-gnu)
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/zig.cmake")
