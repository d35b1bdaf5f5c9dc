"""Writes a span for each response if OpenTelemetry is set up, with its gen_ai attributes.

This module does not import OpenTelemetry. A process that records spans has imported it: by
`opentelemetry-instrument wherry serve`, in a program of its own, or by --otlp-endpoint.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import wherry

from .record import RequestRecord

_OPERATIONS = {  # The operation's name in spans, by the last part of the path.
    "/chat/completions": "chat",
    "/messages": "chat",
    "/responses": "chat",
    "/api/chat": "chat",
    "/completions": "text_completion",
    "/api/generate": "text_completion",
    "/embeddings": "embeddings",
    "/api/embed": "embeddings",
}


class Tracing:
    """Writes the spans of requests that have ended."""

    def __call__(self, record: RequestRecord) -> None:
        """Write the span of a request that has ended."""
        api = sys.modules.get("opentelemetry.trace")
        if api is None or record.written is None:
            return
        if isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
            return  # OpenTelemetry is not set up
        context, kind = _parent(api, record)
        tracer = api.get_tracer("wherry", wherry.__version__)
        operation = _operation(record.route)
        span = tracer.start_span(
            f"{operation} {record.model}",
            context,
            kind=kind,
            attributes=_attributes(record, operation),
            start_time=record.wall_ns,
        )
        if (first := record.first_token_seconds) is not None:
            span.add_event("first token", timestamp=record.wall_ns + int(first * 1e9))
        if record.error:
            span.set_attribute("error.type", record.error)
            span.set_status(api.Status(api.StatusCode.ERROR))
        span.end(record.wall_ns + int(record.seconds * 1e9))


def _parent(api: Any, record: RequestRecord) -> tuple[Any, Any]:
    """Return the parent span: that of an HTTP instrumentation, else from the client's headers."""
    if api.get_current_span().get_span_context().is_valid:
        return None, api.SpanKind.INTERNAL
    # of the package that is imported already; nothing else imports this part of it for certain
    propagate = import_module("opentelemetry.propagate")
    return propagate.extract(dict(record.trace_headers)), api.SpanKind.SERVER


def _operation(route: str) -> str:
    return next((o for end, o in _OPERATIONS.items() if route.endswith(end)), "chat")


def _attributes(record: RequestRecord, operation: str) -> dict[str, Any]:
    running = record.written
    assert running is not None
    totals = running.totals
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "wherry",
        "gen_ai.request.model": record.model,
        "gen_ai.response.model": record.model,
        "gen_ai.response.finish_reasons": [running.finish] if running.finish else [],
        "gen_ai.usage.input_tokens": running.opened["prompt_tokens"],
        "gen_ai.usage.cache_read.input_tokens": totals.cached,
        "gen_ai.usage.output_tokens": totals.sampled,
        "http.request.method": record.method,
        "http.route": record.route,
        "http.response.status_code": record.status,
        "wherry.request_id": record.id,
        "wherry.queue_seconds": totals.queue,
        "wherry.prefill_seconds": totals.prefill,
        "wherry.decode_seconds": totals.decode,
    }
    if (first := record.first_token_seconds) is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = first
    return attributes
