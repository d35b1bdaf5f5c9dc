"""Validates requests in OpenAI's shapes, with additions of vLLM and llama.cpp."""
