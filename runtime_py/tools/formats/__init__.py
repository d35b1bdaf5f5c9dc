"""The kinds of formats; families.py says which family has which."""
