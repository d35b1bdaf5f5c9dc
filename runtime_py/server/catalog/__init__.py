"""Several models in one server: listed in a file or a folder, loaded when they are asked for."""
