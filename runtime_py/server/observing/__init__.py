"""What is known of each request, and who is told: the log, the metrics, traces."""
