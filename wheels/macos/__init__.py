"""Wheels for macOS: the system's C++ library, and TVM's run time for Metal."""
