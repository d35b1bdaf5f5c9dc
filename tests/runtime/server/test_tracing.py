"""Spans of OpenTelemetry, by its API; FastAPI makes those of HTTP."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys

import pytest
from opentelemetry import trace

from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from .asking import CHAT, COMPLETIONS, HI, client_of

TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
TRACEPARENT = {"traceparent": f"00-{TRACE:032x}-{PARENT:016x}-01"}


class Span(trace.NonRecordingSpan):
    ids = itertools.count(1)

    def __init__(self, name, context, kind, attributes, start_time):
        parent = trace.get_current_span(context).get_span_context()
        super().__init__(
            trace.SpanContext(parent.trace_id or 7, next(self.ids), False, trace.TraceFlags(1))
        )
        self.name, self.parent, self.kind = name, parent, kind
        self.attributes, self.start, self.end_time = dict(attributes or {}), start_time, None
        self.events, self.status = [], None

    def set_attribute(self, key, value):
        self.attributes[key] = value

    def add_event(self, name, attributes=None, timestamp=None):
        self.events.append((name, timestamp))

    def set_status(self, status, description=None):
        self.status = status

    def is_recording(self):
        return True

    def end(self, end_time=None):
        self.end_time = end_time


class Tracer(trace.Tracer):
    def __init__(self, name, spans):
        self.name, self.spans = name, spans

    def start_span(self, name, context=None, kind=None, attributes=None, *_, start_time=None, **__):
        span = Span(name, context, kind, attributes, start_time)
        self.spans.setdefault(self.name, []).append(span)
        return span

    @contextlib.contextmanager
    def start_as_current_span(self, *args, **kwargs):
        with trace.use_span(self.start_span(*args, **kwargs)) as span:
            yield span


@pytest.fixture
def spans(monkeypatch):
    """Name of a tracer -> its spans."""
    recorded: dict[str, list[Span]] = {}

    class Provider(trace.TracerProvider):
        def get_tracer(self, name, *_, **__):
            return Tracer(name, recorded)

    provider = Provider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return recorded


@pytest.mark.parametrize("stream", [False, True])
def test_a_span_for_an_answer(make, spans, stream):
    client = client_of(create_app(MLCEngine.of(make("one two")), model_name="m"))
    sent = {**TRACEPARENT, "X-Request-Id": "seven"}
    client.post(CHAT, json={**HI, "stream": stream}, headers=sent)
    (span,) = spans["wherry"]
    assert span.name == "chat m"
    assert span.get_span_context().trace_id == TRACE
    assert span.attributes["gen_ai.operation.name"] == "chat"
    assert span.attributes["gen_ai.request.model"] == "m"
    assert span.attributes["gen_ai.usage.output_tokens"] > 2
    assert span.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert span.attributes["wherry.request_id"] == "seven"
    ((event, at),) = span.events
    assert event == "first token" and span.start < at <= span.end_time
    assert not [v for v in span.attributes.values() if "the cat" in str(v) or "one two" in str(v)]


def test_what_makes_no_answer_has_no_span(make, spans):
    client = client_of(create_app(MLCEngine.of(make())))
    client.get("/health")
    client.post(CHAT, json={})
    assert "wherry" not in spans


def test_errors_are_marked(make, spans):
    model = make("one")
    client = client_of(create_app(MLCEngine.of(model)))
    core_of(model).fail_with = "lost"
    client.post(COMPLETIONS, json={"prompt": "a"})
    (span,) = spans["wherry"]
    assert span.name.startswith("text_completion ")
    assert span.attributes["error.type"] == "engine_error"
    assert span.status.status_code == trace.StatusCode.ERROR


def test_where_nobody_makes_spans_of_http_the_clients_is_the_parent(make, spans, monkeypatch):
    app = create_app(MLCEngine.of(make("one")))
    telemetry = getattr(app, "_native_telemetry", None)
    if telemetry is not None:  # FastAPI since 0.165
        monkeypatch.setattr(telemetry, "enabled", lambda: False)
    client_of(app).post(CHAT, json=HI, headers=TRACEPARENT)
    (span,) = spans["wherry"]
    assert list(spans) == ["wherry"]
    assert span.kind == trace.SpanKind.SERVER
    assert (span.parent.trace_id, span.parent.span_id) == (TRACE, PARENT)


def test_nothing_of_it_is_imported_here():
    code = (
        "import sys, wherry.runtime.server.observing.tracing;"
        "print([m for m in sys.modules if m.split('.')[0] == 'opentelemetry'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": "src"}, capture_output=True
    )
    assert done.stdout.decode().strip() == "[]", done.stderr.decode()
