"""What stands in a compaction item: the summary of a conversation, in a form that clients keep.

It is not encrypted: it is the client's own conversation, and a server that starts again, or another
replica, must be able to read it.
"""

from __future__ import annotations

import base64
import binascii

_MARK = "wherry-summary-1."  # whose it is, and in which form


def sealed(summary: str) -> str:
    """A summary as an item's encrypted_content."""
    return _MARK + base64.b64encode(summary.encode(errors="replace")).decode()


def opened(content: str) -> str:
    """The summary of an item's encrypted_content.

    Raises:
        ValueError: no server of this kind wrote it.
    """
    mark, text = content[: len(_MARK)], content[len(_MARK) :]
    if mark != _MARK:
        raise ValueError("it was not written by POST /v1/responses/compact of this server")
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as e:
        raise ValueError(f"it was changed on its way: {e}") from e


def as_message(content: str) -> str:
    """What the model reads in place of the conversation."""
    return f"Summary of our conversation so far:\n\n{opened(content)}"
