"""The formats of tool calls; families.py says which model family has which format."""
