"""Serves several models, from a file or a folder; a model is loaded at its first request."""
