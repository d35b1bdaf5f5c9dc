"""Compiles an architecture into a library with its metadata."""
