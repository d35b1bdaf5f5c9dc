"""Many core requests of one event each, as embeddings need: a few at a time, results in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from wherry.errors import WherryError

from .dispatcher import Dispatcher, Sink
from .interface import Event, Finish, Job


class Batch:
    """Submits jobs as earlier ones end, so that one API request cannot fill the queue.

    Args:
        jobs: each ends with its first event that has a `finish`.
        dispatcher: the model's.
        sink: receives the events.
        window: the number of jobs that run at one time.
        soon: abort on the poller's thread, for callers on an event loop.

    Raises:
        WherryError: the engine is closed, has failed, is busy, or refuses a job.
    """

    def __init__(
        self, jobs: Sequence[Job], dispatcher: Dispatcher, sink: Sink, window: int, *, soon: bool
    ) -> None:
        self._dispatcher = dispatcher
        self._sink = sink
        self._window = window
        self._abort = dispatcher.abort_soon if soon else dispatcher.abort
        self._rest = iter(enumerate(jobs))
        self._results: list[Event | None] = [None] * len(jobs)
        self._places: dict[int, int] = {}  # the index of each running job, by the core's id
        self._missing = len(jobs)
        self._submit(admitted=False)

    @property
    def done(self) -> bool:
        """Whether every job has ended."""
        return not self._missing

    @property
    def results(self) -> list[Event]:
        """The last event of each job, once all are done."""
        assert self.done
        return [event for event in self._results if event is not None]

    def push(self, events: Sequence[Event]) -> None:
        """Record events.

        Raises:
            WherryError: the core aborted a job.
        """
        for event in events:
            if not event.finish:
                continue
            if event.finish == Finish.ERROR:
                raise WherryError(event.error or "The model failed while it ran this request")
            if event.finish == Finish.ABORTED:
                raise WherryError("The request was aborted")
            self._results[self._places.pop(event.id)] = event
            self._missing -= 1

    @property
    def wants_more(self) -> bool:
        """Whether jobs are left that `refill` can submit."""
        return len(self._places) < min(self._window, self._missing)

    def refill(self) -> None:
        """Submit the next jobs; may block until a step of the engine ends."""
        self._submit(admitted=True)

    def _submit(self, *, admitted: bool) -> None:
        chosen = list(islice(self._rest, self._window - len(self._places)))
        if not chosen:
            return
        ids = self._dispatcher.submit([job for _, job in chosen], self._sink, admitted=admitted)
        self._places.update(zip(ids, (place for place, _ in chosen), strict=True))

    def close(self) -> None:
        """Abort running jobs; idempotent."""
        self._abort(list(self._places))
        self._places.clear()
