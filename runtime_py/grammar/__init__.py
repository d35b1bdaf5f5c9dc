"""Structured output: what a request asks for, audited, compiled, and handed to the core as a mask.

A request's fields become a `Constraint` (fields.py); a JSON Schema is audited first, so that what
cannot be enforced is an error that names it (audit.py); a process of its own tries the grammar
under limits (probe.py) before it is compiled here and kept (compiler.py). The masks themselves are
filled by the core, without Python (engine/grammar).
"""
