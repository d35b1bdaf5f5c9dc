"""The C++ core as Python sees it, and the one thread that pulls its events."""
