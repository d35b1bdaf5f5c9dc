"""Searches trellis-coded weights: integers whose values depend on those before them."""
