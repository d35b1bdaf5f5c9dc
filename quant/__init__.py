"""Quantization schemes, with one module for each family of schemes."""
