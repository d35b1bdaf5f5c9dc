"""From the core's events to answers in OpenAI's shapes."""
