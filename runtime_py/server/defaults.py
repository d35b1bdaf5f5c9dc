"""The server's default limits."""

MAX_BODY = 16 * 2**20  # maximum bytes of a request's body
MAX_QUEUE = 256  # number of outputs that may wait in addition to the running ones
STUCK_SECONDS = 120.0  # longer than the longest step of a large model on a slow machine
DRAIN_SECONDS = 30  # seconds that running requests may take after SIGTERM
