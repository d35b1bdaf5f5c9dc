"""Turns requests into jobs for the core."""
