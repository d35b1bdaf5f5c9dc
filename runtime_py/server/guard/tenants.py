"""The tenant of a request: the engine is shared fairly between tenants.

A key is a tenant: the engine serves tenants in turn, and a tenant never hits another's cached
prefix. Without keys and user names, an address is a tenant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.interface import Job, SamplingParams
from ...request.plan import number_of
from ..observing.record import RequestRecord

_LOWER = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Asker:
    """The sender of a request.

    Attributes:
        key: name of the key; None without keys.
        peer: address of the client.
    """

    key: str | None
    peer: str

    @classmethod
    def of(cls, record: RequestRecord) -> Asker:
        """The sender of a record's request."""
        return cls(record.key, record.client)

    def owning(self, jobs: Sequence[Job]) -> list[Job]:
        """Set the tenant and user of jobs."""
        made: dict[int, SamplingParams] = {}  # many jobs share their parameters
        for job in jobs:
            if id(job.params) not in made:
                made[id(job.params)] = self._own(job.params)
        return [replace(job, params=made[id(job.params)]) for job in jobs]

    def _own(self, params: SamplingParams) -> SamplingParams:
        user = params.user or number_of(f"peer {self.peer}")
        if self.key is None:
            return replace(params, user=user)
        # The engine takes the upper half for the tenant, so naming many users gives no larger
        # share.
        tenant = number_of(f"key {self.key}")
        user = tenant & ~_LOWER | user & _LOWER
        return replace(params, user=user, salt=number_of(f"{self.key} {params.salt}"))
