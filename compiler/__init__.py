"""Turns a model into a compiled folder (the artefact): load, convert, compile, link, package."""
