"""The limits of a key: requests and tokens a minute, and concurrent requests."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..wire.errors import ApiError

_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one key; None: no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent: int | None = None


class Bucket:
    """A token bucket that holds one minute's amount and refills steadily; it may be overdrawn.

    Args:
        per_minute: the bucket's size.
    """

    def __init__(self, per_minute: int) -> None:
        self.size = per_minute
        self._left, self._at = float(per_minute), time.monotonic()

    @property
    def left(self) -> float:
        """Return the amount that is left now; negative: a debt."""
        now = time.monotonic()
        filled = self._left + (now - self._at) * self.size / _MINUTE
        self._left, self._at = min(float(self.size), filled), now
        return self._left

    def take(self, count: int) -> None:
        """Take an amount from the bucket, even more than is left."""
        self._left = self.left - count

    def seconds_until(self, count: float) -> float:
        """Return the seconds until `count` is available."""
        return max(0.0, (count - self.left) * _MINUTE / self.size)


class Quota:
    """Counts the use of one key's limits.

    A request's tokens are counted when it ends, because they are unknown before: after a long
    response the key's next requests wait.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._requests = _bucket(limits.requests_per_minute)
        self._tokens = _bucket(limits.tokens_per_minute)
        self._active = 0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a running request.

        Raises:
            ApiError: 429: a limit is reached.
        """
        self._check()
        if self._requests:
            self._requests.take(1)
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1

    def spend(self, tokens: int) -> None:
        """Count the tokens of an ended request."""
        if self._tokens:
            self._tokens.take(tokens)

    def headers(self) -> Iterator[tuple[str, str]]:
        """Yield the response headers that tell the remaining quota, with OpenAI's names."""
        for name, bucket in (("requests", self._requests), ("tokens", self._tokens)):
            if bucket:
                yield f"X-RateLimit-Limit-{name}", str(bucket.size)
                yield f"X-RateLimit-Remaining-{name}", str(max(0, math.floor(bucket.left)))
                yield f"X-RateLimit-Reset-{name}", f"{bucket.seconds_until(bucket.size):.3f}s"

    def _check(self) -> None:
        most = self.limits.concurrent
        if most is not None and self._active >= most:
            raise _limited(f"{self._active} requests of this key are running, of {most}", 1)
        for what, bucket in (("requests", self._requests), ("tokens", self._tokens)):
            if bucket and (wait := bucket.seconds_until(1)):
                raise _limited(f"This key's {bucket.size} {what} per minute are used up", wait)


def _bucket(per_minute: int | None) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute)


def _limited(message: str, wait: float) -> ApiError:
    seconds = max(1, math.ceil(wait))
    return ApiError(
        429,
        f"{message}; try again in {seconds} s",
        code="rate_limit_exceeded",
        headers={"Retry-After": str(seconds)},
    )
