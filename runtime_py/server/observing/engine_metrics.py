"""Exports the engines' counters as metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ...core.pulse import Snapshot
from ..models import Models


class _Row(NamedTuple):
    name: str  # name of the metric without the prefix wherry_
    what: str
    value: Callable[[Snapshot], float]


def _pages_used(snapshot: Snapshot) -> float:
    total = snapshot.stats.pages_total
    return (total - snapshot.stats.pages_free) / total if total else 0.0


GAUGES = (
    _Row("requests_active", "Outputs that run or wait.", lambda s: s.active),
    _Row("requests_limit", "Maximum outputs that run or wait.", lambda s: s.limit or 0),
    _Row("requests_waiting", "Outputs that wait.", lambda s: s.stats.waiting),
    _Row("requests_prefilling", "Outputs in prefill.", lambda s: s.stats.prefilling),
    _Row("requests_running", "Outputs in decode.", lambda s: s.stats.running),
    _Row("kv_pages", "Pages of the KV cache.", lambda s: s.stats.pages_total),
    _Row("kv_pages_free", "Free pages of the KV cache.", lambda s: s.stats.pages_free),
    _Row(
        "kv_pages_cached", "Free pages that the prefix cache holds.", lambda s: s.stats.pages_cached
    ),
    _Row("kv_page_tokens", "Tokens per page of the KV cache.", lambda s: s.stats.page_size),
    _Row("state_slots", "Slots of recurrent states.", lambda s: s.stats.state_slots),
    _Row("state_slots_free", "Free slots of recurrent states.", lambda s: s.stats.state_slots_free),
    _Row(
        "state_snapshots",
        "Recurrent states that the prefix cache holds.",
        lambda s: s.stats.state_snapshots,
    ),
    _Row("kv_usage_ratio", "Share of pages that requests hold.", _pages_used),
    _Row(
        "stalled_seconds", "Time that requests run without progress.", lambda s: s.stalled_seconds
    ),
    _Row("failed_steps", "Consecutive failed steps, up to now.", lambda s: s.stats.failed_steps),
    _Row(
        "disk_cache_failing",
        "1: prefixes cannot be written to disk.",
        lambda s: bool(s.stats.disk_problem),
    ),
    _Row("engine_up", "0: the engine has failed.", lambda s: not s.failed),
    _Row("stats_age_seconds", "Age of the engine's counters.", lambda s: s.age_seconds),
)
COUNTERS = (
    _Row("steps", "Steps of the engine.", lambda s: s.stats.steps),
    _Row(
        "engine_prompt_tokens",
        "Prompt tokens of admitted requests.",
        lambda s: s.stats.prompt_tokens,
    ),
    _Row(
        "engine_prefill_tokens",
        "Prompt tokens that were computed.",
        lambda s: s.stats.prefill_tokens,
    ),
    _Row(
        "engine_cached_tokens",
        "Prompt tokens from the prefix cache.",
        lambda s: s.stats.cached_tokens,
    ),
    _Row(
        "engine_disk_tokens",
        "Cached tokens that were read from disk.",
        lambda s: s.stats.disk_tokens,
    ),
    _Row(
        "disk_dropped_blocks",
        "Blocks of prefixes not written to disk.",
        lambda s: s.stats.disk_dropped,
    ),
    _Row("engine_decode_tokens", "Tokens that were generated.", lambda s: s.stats.decode_tokens),
    _Row(
        "recomputed_tokens",
        "Tokens computed again after a preemption.",
        lambda s: s.stats.recomputed_tokens,
    ),
    _Row("draft_tokens", "Draft tokens verified.", lambda s: s.stats.drafted_tokens),
    _Row("accepted_draft_tokens", "Draft tokens accepted.", lambda s: s.stats.accepted_tokens),
    # Deprecated names of metrics, which existing dashboards use.
    _Row("guessed_tokens", "Deprecated: draft_tokens.", lambda s: s.stats.drafted_tokens),
    _Row(
        "guessed_right_tokens",
        "Deprecated: accepted_draft_tokens.",
        lambda s: s.stats.accepted_tokens,
    ),
    _Row("outputs_finished", "Outputs that ended.", lambda s: s.stats.finished),
    _Row("preemptions", "Requests preempted because pages ran out.", lambda s: s.stats.preemptions),
    _Row("model_seconds", "Time in the model.", lambda s: s.stats.model_seconds),
    _Row("sample_seconds", "Time of sampling.", lambda s: s.stats.sample_seconds),
    _Row("host_seconds", "Time of scheduling.", lambda s: s.stats.host_seconds),
)


class EngineMetrics:
    """Metrics of all loaded models, from their last snapshots.

    Args:
        models: the models of the server.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        """Return the current metrics; implements `metrics.Source.collect`."""
        snapshots = [(m.name, m.loaded.dispatcher.snapshot()) for m in self._models.served()]
        yield GaugeMetricFamily("wherry_models_loaded", "Models in memory.", len(snapshots))
        for row in GAUGES:
            gauge = GaugeMetricFamily(f"wherry_{row.name}", row.what, labels=["model"])
            for name, snapshot in snapshots:
                gauge.add_metric([name], float(row.value(snapshot)))
            yield gauge
        for row in COUNTERS:
            counter = CounterMetricFamily(f"wherry_{row.name}", row.what, labels=["model"])
            for name, snapshot in snapshots:
                counter.add_metric([name], float(row.value(snapshot)))
            yield counter
