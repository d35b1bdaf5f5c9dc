"""Turns API requests into jobs for the core."""
