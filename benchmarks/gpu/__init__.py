"""Code for a machine with a GPU and without TVM's compiler; see `bundle.py`."""
