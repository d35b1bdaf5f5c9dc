# Linux from glibc 2.28 on (manylinux_2_28), by zig's Clang, which has the headers of every glibc and
# links to the functions of the one that is named (PyPI's ziglang).
#
# The C++ library is GCC's, as TVM's wheels use it: exceptions and classes cross between TVM's libraries
# and ours, so that both need one libstdc++ and one unwinder. wheels/manylinux/stubs.py makes what is
# linked: WHERRY_LINK has stubs of libstdc++ and libgcc_s with what manylinux_2_28 allows, and
# WHERRY_LIBSTDCXX_A is the static library that has the rest, of which nothing is exported
# (engine/exports.map).
set(WHERRY_MANYLINUX_VARIABLES WHERRY_ZIG WHERRY_ARCHITECTURE WHERRY_LINK WHERRY_LIBSTDCXX_A
    WHERRY_LIBSTDCXX_HEADERS WHERRY_PREFIXES)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${WHERRY_MANYLINUX_VARIABLES})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${WHERRY_ARCHITECTURE}")
# `zig c++` would bring LLVM's libc++; `zig cc` compiles C++ with the headers that it is given.
set(CMAKE_CXX_COMPILER "${WHERRY_ZIG}" cc)
set(_flags -target "${WHERRY_ARCHITECTURE}-linux-gnu.2.28" -g0 -fno-sanitize=all -nostdinc++
    "-I${CMAKE_CURRENT_LIST_DIR}/include")
# By -I, not -isystem: they include the C library's headers as the next ones in order.
foreach(_folder IN LISTS WHERRY_LIBSTDCXX_HEADERS)
  list(APPEND _flags "-I${_folder}")
endforeach()
# Messages of errors name files: without the folders of this machine.
foreach(_prefix IN LISTS WHERRY_PREFIXES)
  list(APPEND _flags "-ffile-prefix-map=${_prefix}/=")
endforeach()
string(JOIN " " CMAKE_CXX_FLAGS_INIT ${_flags})
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-s -Wl,--gc-sections")
set(CMAKE_CXX_STANDARD_LIBRARIES
    "${WHERRY_LINK}/libstdc++.o ${WHERRY_LINK}/libgcc_s.o ${WHERRY_LINK}/glibc.o ${WHERRY_LIBSTDCXX_A}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
