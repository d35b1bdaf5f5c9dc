"""Models for apps: libraries for phones with the core, TVM's runtime and models' code."""
