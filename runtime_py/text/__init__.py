"""Converts between text and tokens: tokenizer, templates, detokenizer, stop strings."""
