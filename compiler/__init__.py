"""From a model folder to an artefact."""
