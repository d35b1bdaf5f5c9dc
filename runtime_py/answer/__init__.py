"""Turns the core's events into responses in OpenAI's shapes."""
