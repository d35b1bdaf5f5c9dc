"""Wherry where Python itself runs in a browser (Pyodide): the npm package's engine, for Python.

The model runs in the package's WebAssembly or on the GPU (web/src); here are the two engines'
surfaces over it. Text and bytes cross the border between the languages (web/src/python.ts).
"""
