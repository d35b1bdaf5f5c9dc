"""OpenAI's Responses: /v1/responses and /v1/conversations."""
