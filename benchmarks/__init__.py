"""Compares Wherry with other engines on the same random weights. See README.md."""
