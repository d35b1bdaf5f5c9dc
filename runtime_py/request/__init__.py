"""From a request as it is sent to what the core is asked."""
