"""A file or folder for each group of paths; `app.py` lists them."""
