"""From an architecture to a compiled library with its metadata."""
