"""Ollama's API, under /api/.

Format: https://docs.ollama.com/api. Times are nanoseconds, streams are lines of JSON.
"""
