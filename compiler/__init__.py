"""From a model reference to an artefact: load, convert, compile, link, package."""
