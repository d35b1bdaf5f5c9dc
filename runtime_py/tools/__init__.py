"""Tool calls and reasoning: each model family's format, its parser and its grammar."""
