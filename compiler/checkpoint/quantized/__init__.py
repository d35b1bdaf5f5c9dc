"""Checkpoints in Hugging Face's layout whose weights are quantized already."""
