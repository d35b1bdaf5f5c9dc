"""Targets: one file for each device family, and their kernels."""
