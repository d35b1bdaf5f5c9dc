"""Reads and writes the content of a compaction item: a summary in a form that clients store.

It is not encrypted: it is the client's own conversation, and a restarted server or another replica
must be able to read it.
"""

from __future__ import annotations

import base64
import binascii

_MARK = "wherry-summary-1."  # prefix of the content that names the writer and the version


def sealed(summary: str) -> str:
    """Return a summary as the encrypted_content of an item."""
    return _MARK + base64.b64encode(summary.encode(errors="replace")).decode()


def opened(content: str) -> str:
    """Return the summary in an item's encrypted_content.

    Raises:
        ValueError: another kind of server wrote it.
    """
    mark, text = content[: len(_MARK)], content[len(_MARK) :]
    if mark != _MARK:
        raise ValueError("it was not written by POST /v1/responses/compact of this server")
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as e:
        raise ValueError(f"it was changed on its way: {e}") from e


def as_message(content: str) -> str:
    """Return the text that the model reads in place of the conversation."""
    return f"Summary of our conversation so far:\n\n{opened(content)}"
