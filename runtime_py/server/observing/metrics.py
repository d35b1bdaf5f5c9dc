"""Metrics of requests for Prometheus, updated when a request ends, never per token.

Each app has its own registry; `engine_metrics` adds the engines' metrics, and `vllm_names` adds
vLLM's names for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase

import wherry

from ...host.running import Running
from ..life import Life
from .record import RequestRecord
from .vllm_names import also_as_vllm

# Bucket bounds in seconds or tokens: each is 2 to 2.5 times the previous one, up to the largest
# context.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
CHOICES = (1, 2, 5, 10, 20, 50, 100)
_METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})


class Source(Protocol):
    """A source of metrics that Prometheus collects at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""


class RequestMetrics:
    """Counts ended requests.

    Args:
        life: the server's state, with the number of running requests.
    """

    def __init__(self, life: Life) -> None:
        def histogram(name: str, what: str, buckets: tuple[float, ...] = SECONDS) -> Histogram:
            return Histogram(f"wherry_{name}", what, ["model"], registry=None, buckets=buckets)

        self._http = Counter(
            "wherry_http_requests",
            "Requests by declared path and status; 499: the client went away.",
            ["method", "path", "status"],
            registry=None,
        )
        self._http_seconds = Histogram(
            "wherry_http_request_duration_seconds",
            "From a request's headers to the end of its answer.",
            ["path"],
            registry=None,
            buckets=SECONDS,
        )
        self._in_flight = Gauge(
            "wherry_http_requests_in_flight", "Running requests.", registry=None
        )
        self._in_flight.set_function(lambda: life.active)
        self._sockets = Gauge(
            "wherry_websocket_connections", "Open WebSocket connections.", registry=None
        )
        self._sockets.set_function(lambda: life.sockets)
        self._draining = Gauge("wherry_draining", "1: no new requests are taken.", registry=None)
        self._draining.set_function(lambda: life.draining)
        self._outcomes = Counter(
            "wherry_requests",
            "Answers of models by how they ended: stop, length, tool_calls, or an error's code.",
            ["model", "outcome"],
            registry=None,
        )
        self._keys = Counter(
            "wherry_key_requests", "Requests by the key's name.", ["key"], registry=None
        )
        self._key_tokens = Counter(
            "wherry_key_tokens", "Tokens of prompts and outputs.", ["key"], registry=None
        )
        self._first = histogram(
            "time_to_first_token_seconds", "From a request's headers to its first token."
        )
        self._each = histogram(
            "time_per_output_token_seconds", "Mean time between the tokens of a request."
        )
        self._seconds = histogram("request_seconds", "From a request's headers to its end.")
        self._queue = histogram("queue_seconds", "Time before a request's first step.")
        self._prefill = histogram("prefill_seconds", "From the first step to the first token.")
        self._decode = histogram("decode_seconds", "From the first token to the last.")
        self._inference = histogram("inference_seconds", "From the first step to the last token.")
        self._longest = histogram(
            "longest_output_tokens", "Tokens of a request's longest choice.", TOKENS
        )
        self._max_tokens = histogram("max_tokens", "Maximum tokens of a request's choices.", TOKENS)
        self._choices = histogram("choices", "Choices per request: n.", CHOICES)
        self._prompt = histogram("prompt_tokens", "Prompt tokens per request.", TOKENS)
        self._output = histogram(
            "output_tokens", "Output tokens per request, of all choices.", TOKENS
        )

    def __call__(self, record: RequestRecord) -> None:
        """Count an ended request."""
        method = record.method if record.method in _METHODS else "other"
        self._http.labels(method, record.route, str(record.status)).inc()
        self._http_seconds.labels(record.route).observe(record.seconds)
        if record.key is not None:
            self._keys.labels(record.key).inc()
            self._key_tokens.labels(record.key).inc(record.tokens)
        if record.written is not None and record.model is not None:
            self._answered(record, record.written, record.model)

    def _answered(self, record: RequestRecord, running: Running, model: str) -> None:
        about, totals = running.opened, running.totals
        self._outcomes.labels(model, record.outcome).inc()
        self._seconds.labels(model).observe(record.seconds)
        self._prompt.labels(model).observe(about["prompt_tokens"])
        self._output.labels(model).observe(totals.sampled)
        self._longest.labels(model).observe(totals.longest)
        self._max_tokens.labels(model).observe(about["max_tokens"])
        self._choices.labels(model).observe(about["n"])
        if (first := record.first_token_seconds) is None:
            return
        self._first.labels(model).observe(first)
        self._queue.labels(model).observe(totals.queue)
        self._prefill.labels(model).observe(totals.prefill)
        self._decode.labels(model).observe(totals.decode)
        self._inference.labels(model).observe(totals.prefill + totals.decode)
        between = totals.sampled / about["choices"] - 1
        if between > 0:
            self._each.labels(model).observe(running.token_seconds / between)

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics of requests; implements `Source.collect`."""
        for metric in vars(self).values():
            assert isinstance(metric, MetricWrapperBase)
            yield from metric.collect()


class Exposition:
    """Writes all metrics of an app in one of Prometheus' formats.

    Args:
        sources: the sources of metrics, which are read at each scrape.
        shows: tells whether the request that is answered may see a metric with some labels.
    """

    def __init__(self, *sources: Source, shows: Callable[[Mapping[str, str]], bool]) -> None:
        self._sources = sources
        self._shows = shows
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics without Prometheus' creation times; implements `Source.collect`."""
        built = Metric("wherry_build", "The version.", "info")
        built.add_sample("wherry_build_info", {"version": wherry.__version__}, 1)
        yield built
        for source in self._sources:
            for metric in source.collect():
                metric.samples = [
                    sample
                    for sample in metric.samples
                    if not sample.name.endswith("_created") and self._shows(sample.labels)
                ]
                yield metric
                yield from also_as_vllm(metric)

    def written(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type; the Accept header chooses the format."""
        encoder, media_type = choose_encoder(accept)
        return encoder(self._registry), media_type
