"""What a server allows where nobody says otherwise."""

MAX_BODY = 16 * 2**20  # bytes
MAX_QUEUE = 256  # outputs that wait, beyond those that run
STUCK_SECONDS = 120.0  # more than the longest step of a large model on a slow machine
DRAIN_SECONDS = 30  # that requests under way have after SIGTERM
