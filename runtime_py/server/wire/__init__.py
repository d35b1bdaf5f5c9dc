"""Reads and writes bytes: connections, JSON, errors, streams."""
