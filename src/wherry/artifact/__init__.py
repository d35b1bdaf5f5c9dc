"""The compiled folder (the artefact): its manifest, its side files, and integrity checks."""

MANIFEST = "wherry.json"
