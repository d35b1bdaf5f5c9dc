"""GPU kernels for Vulkan's cooperative matrices (`GpuLimits.cooperative_matrices`).

The shapes that a device multiplies, and the threads that share a matrix, are unknown at compile
time. So a kernel multiplies whole tiles by the intrinsics of `intrinsics.py`, and
`targets/spirv/matrices.py` generates code for each shape.
"""
