"""The cache folder: its entries, their removal, and the servers that use it."""
