"""Architectures: one file each, named as Hugging Face's `model_type`."""
