"""Compiler passes over the IR module, one per file; `pipelines` orders them in phases."""
