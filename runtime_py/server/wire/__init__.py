"""Bytes in and out: connections, JSON, errors, streams."""
