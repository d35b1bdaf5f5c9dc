"""Structured output: request fields become a grammar, which the core applies as a token mask.

Request fields become a `Constraint` (fields.py). A JSON Schema is audited first, so that a keyword
that cannot be enforced is an error with its name (audit.py). A separate process tries the grammar
under limits (probe.py) before it is compiled and cached here (compiler.py). The core fills the
masks without Python (engine/matcher).
"""
