"""Layers without a state of their own: norms, activations, positions, linears."""
