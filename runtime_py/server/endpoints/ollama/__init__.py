"""Ollama's API, under /api/, for the programs that were written for it.

Format: https://docs.ollama.com/api. Times are nanoseconds, streams are lines of JSON.
"""
