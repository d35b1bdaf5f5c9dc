"""GPU kernels for Apple's SIMD groups (`GpuLimits.simdgroups`): 8 x 8 matrices, lane reductions.

32 threads run in lockstep; they read each other's registers by shuffles, and share matrices that
they multiply. Apple does not document which lane has which element of a matrix, and no kernel
depends on it. Source: Metal Shading Language Specification 2.3, "SIMD-group Functions" and
"SIMD-group Matrix Data Types".
"""
