"""One file, or room, a group of paths; `app.py` lists them."""
