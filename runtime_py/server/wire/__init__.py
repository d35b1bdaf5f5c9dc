"""How bytes come and go: connections, JSON, errors, streams."""
