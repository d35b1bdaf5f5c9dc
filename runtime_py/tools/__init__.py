"""Calls of tools and reasoning: how families of models write them, read and enforced."""
