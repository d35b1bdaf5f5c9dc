"""Ollama's API, whose paths begin with /api/.

Format: https://docs.ollama.com/api. Times are nanoseconds, streams are lines of JSON.
"""
