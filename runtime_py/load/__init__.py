"""Loads a model: resolves its name, checks the folder, plans memory and starts the engine."""
