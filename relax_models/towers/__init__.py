"""Vision towers: what models that see compute of images. One file for each kind of model."""
