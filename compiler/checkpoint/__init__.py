"""Weights as others store them, a file per format, and how our parameters are made of them."""
