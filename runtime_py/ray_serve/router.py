"""Sends a prompt where its prefix is cached: cache first, load second.

Each handle has a router of its own, so each replica of the ingress remembers what it has sent; what
the others have sent it learns from the replicas, which Ray Serve asks every few seconds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from .http_call import HttpRequest
from .kept import keepers
from .prefix_memory import PrefixMemory, best, hear
from .prompt_prefix import unpacked


class PrefixRouter(RequestRouter):
    """Asks the replica with the longest prefix, then the idler of two that chance picks."""

    def initialize_state(self, *, slack: int = 8, blocks: int = 2**16, **_: Any) -> None:
        """See Options.prefix_slack and prefix_blocks."""
        self._slack = slack
        self._memory: PrefixMemory[ReplicaID] = PrefixMemory(blocks)

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Groups of replicas, of which the first with room is asked: its idlest."""
        by_id = {r.replica_id: r for r in candidate_replicas}
        two = random.sample(candidate_replicas, min(2, len(candidate_replicas)))
        keys = _keys(pending_request)
        if keeper := self._keeper(pending_request, by_id):
            return [[keeper]]
        queues = self.replica_queue_len_cache
        loads = {r: queues.get(r) for r in by_id}
        with_prefix = best(self._memory.matches(keys, by_id), loads, self._slack)
        return [[by_id[r] for r in with_prefix], two]

    def _keeper(
        self, request: PendingRequest | None, replicas: dict[ReplicaID, RunningReplica]
    ) -> RunningReplica | None:
        """Who keeps what the request names, however busy."""
        asked = _asked(request)
        if asked is None or asked.kept is None:
            return None
        by_name = {r.replica_id.unique_id: r for r in replicas.values()}
        name = keepers().of(asked.kept, by_name)
        return None if name is None else by_name[name]

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any
    ) -> None:
        """Remember who has the prompt now."""
        self._memory.note(replica_id, _keys(pending_request))

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Forget those that are gone; hear what the others were sent, by other ingresses too."""
        super().update_replicas(replicas)
        self._memory.keep({r.replica_id for r in replicas})
        keepers().forget_others({r.replica_id.unique_id for r in replicas})
        for replica in replicas:
            keepers().hear(replica.replica_id.unique_id, replica.routing_stats)
            hear(self._memory, replica.replica_id, replica.routing_stats)


def _asked(request: PendingRequest | None) -> HttpRequest | None:
    first = request.args[0] if request is not None and request.args else None
    return first if isinstance(first, HttpRequest) else None


def _keys(request: PendingRequest | None) -> Sequence[int]:
    asked = _asked(request)
    return () if asked is None else unpacked(asked.prefix)
