"""Loads a model: from its name to an engine."""
