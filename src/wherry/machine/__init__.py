"""This machine: its CPU, its devices, and the libraries that drive them."""
