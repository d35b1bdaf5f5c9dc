"""Names the tenant of a request, because the engine is shared fairly between tenants.

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
    """The client that sent a request.

    Attributes:
        key: name of the client's key; None: the server has no keys.
        peer: network address of the client.
    """

    key: str | None
    peer: str

    @classmethod
    def of(cls, record: RequestRecord) -> Asker:
        """Return the client that sent the request of a record."""
        return cls(record.key, record.client)

    def owning(self, jobs: Sequence[Job]) -> list[Job]:
        """Return jobs with their tenant and user set."""
        # parameters by the id of the old ones, because many jobs share theirs
        made: dict[int, SamplingParams] = {}
        for job in jobs:
            if id(job.params) not in made:
                made[id(job.params)] = self._own(job.params)
        return [replace(job, params=made[id(job.params)]) for job in jobs]

    def _own(self, params: SamplingParams) -> SamplingParams:
        user = params.user or number_of(f"peer {self.peer}")
        if self.key is None:
            return replace(params, user=user)
        # The engine takes the upper half of `user` for the tenant, so that naming many users gives
        # no larger share.
        tenant = number_of(f"key {self.key}")
        user = tenant & ~_LOWER | user & _LOWER
        return replace(params, user=user, salt=number_of(f"{self.key} {params.salt}"))
