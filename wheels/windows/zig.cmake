# Windows x64, by zig's Clang and linker (PyPI's ziglang), which has MinGW's headers of Windows and the
# lists of its libraries' symbols.
#
# TVM's wheel for Windows is Microsoft's C++, and this is not: C functions alone cross between TVM's
# libraries and the core (engine/system/tvm_calls.cmake). The C++ library is linked in; the C library is
# Windows' own (UCRT).
set(WHERRY_WINDOWS_VARIABLES WHERRY_ZIG WHERRY_PREFIXES)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${WHERRY_WINDOWS_VARIABLES})
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER "${WHERRY_ZIG}" c++)
# Not asked what it is: CMake would have it link a program, which here means to build libc++ first.
set(CMAKE_CXX_COMPILER_FORCED ON)
set(CMAKE_CXX_COMPILER_ID_RUN ON)
set(CMAKE_CXX_COMPILER_ID Clang)
set(CMAKE_CXX_COMPILER_VERSION 20)
set(CMAKE_CXX_COMPILER_FRONTEND_VARIANT GNU)
set(CMAKE_CXX_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CXX_COMPILE_FEATURES cxx_std_11 cxx_std_14 cxx_std_17) # what TVM's headers ask for
set(CMAKE_CXX_EXTENSIONS_COMPUTED_DEFAULT ON)
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CXX "${CMAKE_CURRENT_LIST_DIR}/rules.cmake")
set(CMAKE_HAVE_LIBC_PTHREAD ON) # libwinpthread, linked in
set(_flags -target x86_64-windows-gnu -g0 -fno-sanitize=all)
foreach(_prefix IN LISTS WHERRY_PREFIXES)
  list(APPEND _flags "-ffile-prefix-map=${_prefix}/=")
endforeach()
string(JOIN " " CMAKE_CXX_FLAGS_INIT ${_flags})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
