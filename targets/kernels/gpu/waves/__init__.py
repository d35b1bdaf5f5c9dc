"""GPU kernels for AMD's matrix units (`GpuLimits.wave_matrices`): WMMA of RDNA, MFMA of CDNA."""
