"""The compiled folder: its manifest, its side files, and whether all of it is whole."""
