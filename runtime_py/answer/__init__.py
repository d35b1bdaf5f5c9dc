"""Turns the core's events into answers in OpenAI's shapes."""
