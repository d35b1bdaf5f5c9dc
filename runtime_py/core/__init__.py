"""The C++ core as Python sees it, and the thread that polls its events."""
