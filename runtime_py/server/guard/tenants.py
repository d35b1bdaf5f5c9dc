"""Whose a request is: what the engine shares fairly, and what it never shares.

A key is a tenant: the engine serves tenants in turn, and none of them finds a prefix that was
computed for another. Without keys whoever names no user is known by his address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.interface import SamplingParams
from ...request.plan import Job, number_of
from ..observing.record import RequestRecord

_LOWER = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a request.

    Attributes:
        key: name of his key; None where none is asked for.
        peer: his address.
    """

    key: str | None
    peer: str

    @classmethod
    def of(cls, record: RequestRecord) -> Asker:
        """The asker of a record's request."""
        return cls(record.key, record.client)

    def owning(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs, in his name."""
        made: dict[int, SamplingParams] = {}  # many jobs may have the same parameters
        for job in jobs:
            if id(job.params) not in made:
                made[id(job.params)] = self._own(job.params)
        return [replace(job, params=made[id(job.params)]) for job in jobs]

    def _own(self, params: SamplingParams) -> SamplingParams:
        user = params.user or number_of(f"peer {self.peer}")
        if self.key is None:
            return replace(params, user=user)
        # The engine takes the upper half for the tenant: to name many users gives no larger share.
        tenant = number_of(f"key {self.key}")
        user = tenant & ~_LOWER | user & _LOWER
        return replace(params, user=user, salt=number_of(f"{self.key} {params.salt}"))
