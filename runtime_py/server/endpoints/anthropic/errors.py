"""Writes errors in the shape of Anthropic's API."""

from __future__ import annotations

from typing import Any

from ...observing.record import current
from ...wire.errors import ApiError

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
# agents search error messages for these words and then shorten the conversation
_TOO_LONG = "prompt is too long"


def body(error: ApiError) -> dict[str, Any]:
    """Return the JSON of an error in the shape of Anthropic's API."""
    kind = "api_error" if error.status_code >= 500 else "invalid_request_error"
    message = error.detail
    if (overflow := error.overflow) is not None:
        most = min(overflow.context, overflow.prompt - 1)  # the output needs a token, too
        message = f"{_TOO_LONG}: {overflow.prompt} tokens > {most} maximum"
    return {
        "type": "error",
        "error": {"type": _KINDS.get(error.status_code, kind), "message": message},
        "request_id": current().id,
    }
