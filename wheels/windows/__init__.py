"""Wheels for Windows x64: MinGW's headers, and TVM's libraries by their C functions alone."""
