"""Parses tool calls and reasoning: the format of each model family, its parser and its grammar."""
