"""Grammars of tool calls: the formats of model families, and the constraint of a request."""
