"""Routes a prompt to the replica that has its prefix cached: cache first, load second.

Each replica of the ingress has a router that remembers the prompts that it sent. It learns the
prompts of the other ingress replicas from the reports of the engine replicas, which Ray Serve
collects every few seconds.
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
    """Chooses the replica with the longest cached prefix, else the less busy of two random ones."""

    def initialize_state(self, *, slack: int = 8, blocks: int = 2**16, **_: Any) -> None:
        """Create the memory of prompt prefixes; Options.prefix_slack and prefix_blocks describe it.

        Options.prefix_slack and prefix_blocks describe the arguments.
        """
        self._slack = slack
        self._memory: PrefixMemory[ReplicaID] = PrefixMemory(blocks)

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Return groups of replicas.

        Ray takes the idlest replica of the first group that has room.
        """
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
        """Return the replica that stores the item in the request, however busy it is."""
        http_request = _http_request(request)
        if http_request is None or http_request.kept is None:
            return None
        by_name = {r.replica_id.unique_id: r for r in replicas.values()}
        name = keepers().of(http_request.kept, by_name)
        return None if name is None else by_name[name]

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any
    ) -> None:
        """Record which replica received the prompt."""
        self._memory.note(replica_id, _keys(pending_request))

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Forget replicas that are gone, and read the reports of the others."""
        super().update_replicas(replicas)
        self._memory.keep({r.replica_id for r in replicas})
        keepers().forget_others({r.replica_id.unique_id for r in replicas})
        for replica in replicas:
            keepers().hear(replica.replica_id.unique_id, replica.routing_stats)
            hear(self._memory, replica.replica_id, replica.routing_stats)


def _http_request(request: PendingRequest | None) -> HttpRequest | None:
    first = request.args[0] if request is not None and request.args else None
    return first if isinstance(first, HttpRequest) else None


def _keys(request: PendingRequest | None) -> Sequence[int]:
    http_request = _http_request(request)
    return () if http_request is None else unpacked(http_request.prefix)
