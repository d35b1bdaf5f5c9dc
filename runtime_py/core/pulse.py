"""Watches, on a thread that may block, whether the engine makes progress."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .interface import CoreStats

_log = logging.getLogger(__name__)
INTERVAL = 1.0  # seconds between two reads of the counters while requests are active


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The last known state of an engine; reading it never waits for a step of the engine."""

    stats: CoreStats
    age_seconds: float  # seconds since `stats` was read
    active: int  # number of core requests that have not ended
    limit: int | None  # maximum of `active`; None: no limit
    stalled_seconds: float  # seconds without progress while requests are active
    failed: bool


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the JSON object that GET /stats reports for a model."""
    stats = snapshot.stats
    return {
        "state": "busy" if snapshot.active else "idle",
        "requests": {
            "active": snapshot.active,
            "limit": snapshot.limit,
            "waiting": stats.waiting,
            "prefilling": stats.prefilling,
            "running": stats.running,
            "finished": stats.finished,
        },
        "kv_cache": {
            "pages_total": stats.pages_total,
            "pages_free": stats.pages_free,
            "pages_cached": stats.pages_cached,
            "page_size": stats.page_size,
        },
        "recurrent_state": {
            "slots_total": stats.state_slots,
            "slots_free": stats.state_slots_free,
            "snapshots": stats.state_snapshots,
        },
        "tokens": {
            "prompt": stats.prompt_tokens,
            "cached": stats.cached_tokens,
            "cached_from_disk": stats.disk_tokens,
            "prefill": stats.prefill_tokens,
            "recomputed": stats.recomputed_tokens,
            "decode": stats.decode_tokens,
            "draft": stats.drafted_tokens,
            "draft_accepted": stats.accepted_tokens,
            "guessed": stats.drafted_tokens,  # deprecated name of draft
            "guessed_right": stats.accepted_tokens,  # deprecated name of draft_accepted
        },
        "drafts": _drafts(stats),
        "disk": {"dropped_blocks": stats.disk_dropped, "problem": stats.disk_problem or None},
        "preemptions": stats.preemptions,
        "steps": stats.steps,
        "readback_bytes": stats.readback_bytes,
        "rows": {"candidates": stats.candidate_rows, "whole": stats.whole_rows},
        "failed_steps": stats.failed_steps,
        "model_seconds": stats.model_seconds,
        "sample_seconds": stats.sample_seconds,
        "host_seconds": stats.host_seconds,
        "overlapped_seconds": stats.overlapped_seconds,
        "chained_steps": stats.chained_steps,
        "wasted_rows": stats.wasted_rows,
        "vain_rows": stats.wasted_rows,  # deprecated name of wasted_rows
        "graph_steps": stats.graph_steps,
        "graphs_given_up": stats.graphs_given_up or None,
        "chains_given_up": stats.chains_given_up or None,
        "stalled_seconds": round(snapshot.stalled_seconds, 3),
        "age_seconds": round(snapshot.age_seconds, 3),
    }


def _drafts(stats: CoreStats) -> dict[str, Any]:
    """Return how well draft tokens do: the share that is accepted, and output tokens a step."""
    verified, accepted, written = stats.drafted_tokens, stats.accepted_tokens, stats.decode_tokens
    steps = written - accepted  # of all requests: each writes a token besides the accepted ones
    return {
        "verified": verified,
        "accepted": accepted,
        "acceptance": round(accepted / verified, 4) if verified else None,
        "tokens_per_step": round(written / steps, 4) if steps > 0 else None,
    }


class Pulse:
    """Reads the core's counters periodically while requests are active.

    Args:
        read: reads the counters; may block for a step of the engine, or for ever.
        active: returns the number of running requests at once.
    """

    def __init__(self, read: Callable[[], CoreStats], active: Callable[[], int]) -> None:
        self._read, self._active = read, active
        self._changed = threading.Condition()
        self._stirred = self._closed = False
        self._resting = True  # whether the last read found no active request
        self.stats = CoreStats()
        self._warned_from = 1  # dropped blocks from which the next warning is logged
        self._log_changes(read())
        self.looks = 0  # number of reads since the start
        self.seen_at = self._moved_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="wherry-pulse", daemon=True)
        self._thread.start()

    def stir(self) -> None:
        """Read the counters soon, because work has arrived or a client asks for the state."""
        with self._changed:
            if self._resting and self._active():
                self._resting, self._moved_at = False, time.monotonic()
            self._stirred = True
            self._changed.notify()

    @property
    def stalled_seconds(self) -> float:
        """Return the seconds without progress while requests are active; 0 without requests."""
        return time.monotonic() - self._moved_at if self._active() else 0.0

    def close(self) -> None:
        """End the thread after the read that it may be in."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._awaken():
                stats = self._read()
                with self._changed:
                    self._note(stats)
        except Exception:  # the engine has failed, which the dispatcher reports
            _log.debug("The counters cannot be read", exc_info=True)

    def _awaken(self) -> bool:
        with self._changed:
            seconds = INTERVAL if self._active() else None
            self._changed.wait_for(lambda: self._stirred or self._closed, seconds)
            self._stirred = False
            return not self._closed

    def _note(self, stats: CoreStats) -> None:
        self.seen_at = time.monotonic()
        self._resting = not self._active()
        if self._resting or _progress(stats) != _progress(self.stats):
            self._moved_at = self.seen_at
        self._log_changes(stats)
        self.looks += 1

    def _log_changes(self, stats: CoreStats) -> None:
        """Keep the counters, and log what the engine has given up since the last ones."""
        for what, reason, before in (
            ("CUDA graphs are off", stats.graphs_given_up, self.stats.graphs_given_up),
            ("No step is launched ahead", stats.chains_given_up, self.stats.chains_given_up),
        ):
            if reason and not before:
                _log.warning("%s, which costs speed alone: %s", what, reason)
        if stats.disk_problem and stats.disk_problem != self.stats.disk_problem:
            _log.warning("No prefix is written to the disk: %s", stats.disk_problem)
        elif self.stats.disk_problem and not stats.disk_problem:
            _log.warning("Prefixes are written to the disk again")
        if stats.disk_dropped >= self._warned_from:
            self._warned_from = 2 * stats.disk_dropped
            _log.warning(
                "%d blocks of prefixes were not written to the disk so far, because it is slower "
                "than the prompts, or fails. After a restart these prefixes are computed again",
                stats.disk_dropped,
            )
        self.stats = stats


def _progress(stats: CoreStats) -> tuple[int, ...]:
    return stats.steps, stats.prefill_tokens, stats.decode_tokens, stats.finished
