"""Requests in OpenAI's shapes, validated, with additions of vLLM and llama.cpp."""
