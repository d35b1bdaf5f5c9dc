"""Kernels for Apple's SIMD groups (`GpuLimits.simdgroups`): matrices of 8 x 8, sums of lanes.

32 threads run in step; what one of them has in a register another can read, and together they hold
matrices that they multiply. Which lane holds which element of a matrix is Apple's own: nothing
here asks. Source: Metal Shading Language Specification 2.3, "SIMD-group Functions" and "SIMD-group
Matrix Data Types".
"""
