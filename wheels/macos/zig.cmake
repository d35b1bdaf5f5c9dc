# macOS from 14 on, on Apple silicon, by zig's Clang and linker (PyPI's ziglang), which has the headers
# of Apple's C library and the list of its symbols.
#
# The C++ library is the system's, /usr/lib/libc++.1.dylib, as TVM's wheels use it: exceptions and
# classes cross between TVM's libraries and ours. Zig's headers of libc++ say which of its functions
# the system's has from which version on, if they are asked: then no newer one is called. link.py
# writes the list of those that are called, because no package has a list of all.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_OSX_ARCHITECTURES "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "")
set(WHERRY_ZIG_TARGET aarch64-macos.14.0)
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/zig.cmake")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES Python_EXECUTABLE)
set(WHERRY_TVM_BY_C OFF)
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CXX "${CMAKE_CURRENT_LIST_DIR}/rules.cmake")
set(CMAKE_INSTALL_NAME_TOOL :) # paths are set when a library is linked
string(APPEND CMAKE_CXX_FLAGS_INIT " -U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS"
  " -D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1")
