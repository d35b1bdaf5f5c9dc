"""Anthropic's protocol: /v1/messages and the counting of its tokens."""
