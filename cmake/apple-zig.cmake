# Apple's systems from a machine without Xcode: zig's Clang (PyPI's ziglang) makes static libraries.
#
#   cmake -S mobile/native -B build/iphone -G Ninja -DWHERRY_SHARED=OFF \
#     -DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/apple-zig.cmake \
#     -DWHERRY_ZIG=FOLDER -DWHERRY_ZIG_TARGET=aarch64-ios.16.0
#
# FOLDER is the one of Python's package ziglang, with the program zig in it.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WHERRY_ZIG WHERRY_ZIG_TARGET)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER "${WHERRY_ZIG}/zig" c++)
# Not asked what it is: CMake would have it link a program, which here means to build libc++ first.
set(CMAKE_CXX_COMPILER_FORCED ON)
set(CMAKE_CXX_COMPILER_ID_RUN ON)
set(CMAKE_CXX_COMPILER_ID Clang)
set(CMAKE_CXX_COMPILER_VERSION 20)
set(CMAKE_CXX_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CXX_EXTENSIONS_COMPUTED_DEFAULT ON)
# Apple's C library is not found by itself for iOS. libc++'s headers say which of its functions a
# system's own libc++ has from which version on, if they are asked: then no newer one is called.
string(JOIN " " CMAKE_CXX_FLAGS_INIT
  "-target ${WHERRY_ZIG_TARGET} -g0"
  "-isystem ${WHERRY_ZIG}/lib/libc/include/any-darwin-any"
  "-U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS -D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1")
set(CMAKE_AR "${WHERRY_ZIG}/zig")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar --format=darwin qcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar --format=darwin qs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
