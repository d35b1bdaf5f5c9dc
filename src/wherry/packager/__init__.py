"""Packages models for apps: libraries with the engine, TVM's runtime and models' code."""
