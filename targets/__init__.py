"""Compilation targets: one file per device family, and their kernels."""
