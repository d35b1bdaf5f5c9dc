"""Turns a model into an artefact: load, convert, compile, link, package."""
