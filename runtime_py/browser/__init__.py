"""Wherry for Python in a browser (Pyodide): the npm package's engine with a Python interface.

The model runs in the package's WebAssembly or on the GPU (web/src); this folder has the interfaces
of the two engines. Python and JavaScript exchange only texts and bytes (web/src/python.ts).
"""
