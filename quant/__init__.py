"""Quantization schemes: one file a family."""
