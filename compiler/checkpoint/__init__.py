"""Readers of checkpoint formats, and the assembly of parameters from checkpoint tensors."""
