"""Passes over the module, one a file; `pipelines` puts them into phases."""
