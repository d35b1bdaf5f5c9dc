"""Runs many core requests of one event each, a few at a time; embeddings need this."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from wherry.errors import WherryError

from .dispatcher import Dispatcher, Sink
from .interface import Event, Finish, Job


class Batch:
    """Submits jobs as earlier ones end, so that one API request cannot fill the queue.

    Args:
        jobs: the requests; each ends with its first event that has a `finish`.
        dispatcher: the dispatcher of the model.
        sink: receives the events.
        window: the number of jobs that run at one time.
        soon: whether `close` leaves the abort to the poller's thread, as callers on an event loop
            need.

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
        # maps the core's id of each running job to the job's index
        self._places: dict[int, int] = {}
        self._missing = len(jobs)
        self._submit(admitted=False)

    @property
    def done(self) -> bool:
        """Tell whether every job has ended."""
        return not self._missing

    @property
    def results(self) -> list[Event]:
        """Return the last event of each job, in the jobs' order; call it when all are done."""
        assert self.done
        return [event for event in self._results if event is not None]

    def push(self, events: Sequence[Event]) -> None:
        """Record the last event of each job that has ended.

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
        """Tell whether jobs are left that `refill` can submit."""
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
