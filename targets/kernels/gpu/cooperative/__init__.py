"""Kernels for Vulkan's cooperative matrices (`GpuLimits.cooperative_matrices`).

Which shapes a device multiplies, and how many threads hold a matrix together, is known when it is
there, not when code is made for it. So a kernel says of a whole tile that it is multiplied, in the
intrinsics of `intrinsics.py`, and `targets/spirv_matrices.py` writes that for each shape.
"""
