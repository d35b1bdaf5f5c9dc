"""Benchmarks for a GPU machine that has no TVM compiler; see `bundle.py`."""
