# macOS from 14 on, on Apple silicon, by zig's Clang and linker (PyPI's ziglang), which has the headers
# of Apple's C library and the list of its symbols.
#
# The C++ library is the system's, /usr/lib/libc++.1.dylib, as TVM's wheels use it: exceptions and
# classes cross between TVM's libraries and ours. Zig's headers of libc++ say which of its functions
# the system's has from which version on, if they are asked: then no newer one is called. link.py
# writes the list of those that are called, because no package has a list of all.
set(WHERRY_MACOS_VARIABLES WHERRY_ZIG WHERRY_PREFIXES Python_EXECUTABLE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${WHERRY_MACOS_VARIABLES})
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_OSX_ARCHITECTURES "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER "${WHERRY_ZIG}" c++)
# Not asked what it is: CMake would have it link a program, which here means to build libc++ first.
set(CMAKE_CXX_COMPILER_FORCED ON)
set(CMAKE_CXX_COMPILER_ID_RUN ON)
set(CMAKE_CXX_COMPILER_ID Clang)
set(CMAKE_CXX_COMPILER_VERSION 20)
set(CMAKE_CXX_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CXX_COMPILE_FEATURES cxx_std_11 cxx_std_14 cxx_std_17) # what TVM's headers ask for
set(CMAKE_CXX_EXTENSIONS_COMPUTED_DEFAULT ON)
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CXX "${CMAKE_CURRENT_LIST_DIR}/rules.cmake")
set(CMAKE_HAVE_LIBC_PTHREAD ON) # libSystem has it
set(CMAKE_INSTALL_NAME_TOOL :) # paths are set when a library is linked
set(_flags -target aarch64-macos.14.0 -g0 -fno-sanitize=all
    -U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS -D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1)
foreach(_prefix IN LISTS WHERRY_PREFIXES)
  list(APPEND _flags "-ffile-prefix-map=${_prefix}/=")
endforeach()
string(JOIN " " CMAKE_CXX_FLAGS_INIT ${_flags})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
