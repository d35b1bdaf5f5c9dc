"""Wheels for Linux: manylinux_2_28, with GCC's C++ library."""
