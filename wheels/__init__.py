"""Builds and checks the wheels that need no compiler: `make wheels`."""
