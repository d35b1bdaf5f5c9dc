"""The endpoints: a file or folder for each group of paths, which `app.py` lists."""
