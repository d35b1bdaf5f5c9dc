"""The server's default limits."""

MAX_BODY = 16 * 2**20  # bytes
MAX_QUEUE = 256  # waiting outputs besides the running ones
STUCK_SECONDS = 120.0  # longer than the longest step of a large model on a slow machine
DRAIN_SECONDS = 30  # time for running requests after SIGTERM
