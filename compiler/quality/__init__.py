"""The quality card: how far the distributions of a compiled model are from the float model's."""
