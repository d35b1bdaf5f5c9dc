"""A scripted core that embeds: a vector that only the prompt determines."""

from __future__ import annotations

import numpy as np

from wherry.runtime.core.interface import Event, Finish

from .fake_core import FakeCore

SIZE = 8


def vector_of(prompt: list[int]) -> np.ndarray:
    """Float32 [SIZE]."""
    return np.random.default_rng(prompt).normal(size=SIZE).astype(np.float32)


class VectorCore(FakeCore):
    """FakeCore with the entry `embed`; a token that is asked for has the logprob -1 / its id."""

    def __init__(self, *args, entries=("forward", "embed"), **options):
        super().__init__(*args, **options)
        self.metadata |= {"entries": list(entries), "embedding_size": SIZE}
        self.context += 1  # what is embedded may fill it
        self.most_at_once = 0

    def _sample(self, request_id, request):
        self.most_at_once = max(self.most_at_once, len(self._running) + len(self._waiting))
        if request.params.embed and not self.fail_with:
            data = vector_of(request.prompt).tobytes()
            return Event(request_id, -1, Finish.DONE, 0.0, embedding=data)
        event = super()._sample(request_id, request)
        if request.params.allowed and event.token >= 0:
            (token,) = request.params.allowed
            return event._replace(token=token, logprob=-1 / token)
        return event
