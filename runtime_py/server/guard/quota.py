"""What one key may use: requests and tokens a minute, and requests at one time."""

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
    """Limits of one key; None: no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent: int | None = None


class Bucket:
    """Holds a minute's worth, and fills up steadily; it may be overdrawn, and then is a debt.

    Args:
        per_minute: what it holds.
    """

    def __init__(self, per_minute: int) -> None:
        self.size = per_minute
        self._left, self._at = float(per_minute), time.monotonic()

    @property
    def left(self) -> float:
        """What may be taken now; negative: a debt."""
        now = time.monotonic()
        filled = self._left + (now - self._at) * self.size / _MINUTE
        self._left, self._at = min(float(self.size), filled), now
        return self._left

    def take(self, count: int) -> None:
        """Take, also more than there is."""
        self._left = self.left - count

    def seconds_until(self, count: float) -> float:
        """Until so much may be taken."""
        return max(0.0, (count - self.left) * _MINUTE / self.size)


class Quota:
    """One key's use of its limits.

    A request's tokens are known when it ends: then they are taken, so that a long answer is paid
    for by those who come after it.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._requests = _bucket(limits.requests_per_minute)
        self._tokens = _bucket(limits.tokens_per_minute)
        self._active = 0

    @contextmanager
    def request(self) -> Iterator[None]:
        """One request is under way.

        Raises:
            ApiError: 429, a limit is reached.
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
        """A request has ended, which took so many."""
        if self._tokens:
            self._tokens.take(tokens)

    def headers(self) -> Iterator[tuple[str, str]]:
        """What is left, under the names that OpenAI's clients know."""
        for name, bucket in (("requests", self._requests), ("tokens", self._tokens)):
            if bucket:
                yield f"X-RateLimit-Limit-{name}", str(bucket.size)
                yield f"X-RateLimit-Remaining-{name}", str(max(0, math.floor(bucket.left)))
                yield f"X-RateLimit-Reset-{name}", f"{bucket.seconds_until(bucket.size):.3f}s"

    def _check(self) -> None:
        most = self.limits.concurrent
        if most is not None and self._active >= most:
            raise _limited(f"{self._active} requests of this key are under way, of {most}", 1)
        for what, bucket in (("requests", self._requests), ("tokens", self._tokens)):
            if bucket and (wait := bucket.seconds_until(1)):
                raise _limited(f"This key's {bucket.size} {what} a minute are used up", wait)


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
