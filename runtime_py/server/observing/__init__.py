"""Records each request for the log, the metrics and traces."""
