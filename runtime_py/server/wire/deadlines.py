"""The deadline of a request: the server's limit, or a shorter one that the client sets."""

from __future__ import annotations

import math

from starlette.datastructures import Headers

from ..observing.record import RequestRecord
from .errors import ApiError

TIMEOUT_HEADER = "X-Request-Timeout"
_SHOWN = 100  # characters of a wrong header that an error message shows


def set_deadline(record: RequestRecord, headers: Headers, limit: float | None) -> None:
    """Set the request's deadline.

    Args:
        record: the request's record.
        headers: the request's headers, which may ask for less than the limit.
        limit: the server's limit in seconds; None: no limit.

    Raises:
        ApiError: the header is no number of seconds.
    """
    given = headers.get(TIMEOUT_HEADER)
    own = _seconds(given)
    times = [seconds for seconds in (limit, own) if seconds is not None]
    if times:
        record.time_limit = min(times)
        record.own_limit = record.time_limit != limit
        record.deadline = record.started + record.time_limit


def _seconds(given: str | None) -> float | None:
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ApiError(
            400,
            f"{TIMEOUT_HEADER} is {given[:_SHOWN]!r}; it takes seconds, as 30 or 2.5",
            code="invalid_timeout",
        )
    return seconds


def deadline_exceeded(record: RequestRecord) -> ApiError:
    """Return the error of a request at its deadline: 504, or 408 for the client's own limit."""
    if record.running:
        record.running.look()
    written = record.running.totals.sampled if record.running else 0
    whose = f" ({TIMEOUT_HEADER})" if record.own_limit else ""
    return ApiError(
        408 if record.own_limit else 504,
        f"The request's time of {record.time_limit or 0:g} s{whose} is over; it was ended after "
        f"{written} tokens of output",
        code="deadline_exceeded",
    )
