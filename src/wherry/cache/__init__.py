"""The cache folder: what it holds, what may go, and which servers share it."""
