"""Wherry beside other engines, on the same random weights. See README.md."""
