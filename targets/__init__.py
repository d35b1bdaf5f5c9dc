"""Targets: one file a device family, and the kernels that a family brings of its own."""
