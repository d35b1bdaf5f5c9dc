"""The formats; families.py says which family has which."""
