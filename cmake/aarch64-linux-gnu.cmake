# Cross-compiling for 64-bit Arm Linux (Debian: apt install g++-aarch64-linux-gnu qemu-user).
#
#   cmake --preset aarch64 -DWHERRY_TVM_FFI_LIBRARY=PATH/libtvm_ffi.so
#
# libtvm_ffi.so is the one of PyPI's aarch64 wheel of apache-tvm-ffi.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(QEMU_AARCH64 qemu-aarch64)
if(QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${QEMU_AARCH64};-L;/usr/aarch64-linux-gnu")
endif()
