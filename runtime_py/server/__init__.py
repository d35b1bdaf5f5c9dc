"""The HTTP server: its application, protocols, access control, metrics and several models."""
