"""Several models in one server, from a file or a folder; a model is loaded at its first request."""
