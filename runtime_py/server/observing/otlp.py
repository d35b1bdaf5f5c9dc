"""Exports traces for --otlp-endpoint, if no other program has set up OpenTelemetry."""

from __future__ import annotations

from importlib import import_module

import wherry
from wherry.errors import ToolchainError


def export_to(endpoint: str) -> None:
    """Record spans and send them in batches, as OTLP over HTTP; the last ones are sent at exit.

    Args:
        endpoint: URL of a collector's traces, such as http://localhost:4318/v1/traces.

    Raises:
        ToolchainError: OpenTelemetry's SDK or its exporter is not installed.
    """
    try:
        trace = import_module("opentelemetry.trace")
        sdk = import_module("opentelemetry.sdk.trace")
        batches = import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as e:
        raise ToolchainError(
            f"--otlp-endpoint: {e.name} is not installed. Type: pip install 'wherry[otel]'"
        ) from e
    about = {"service.name": "wherry", "service.version": wherry.__version__}
    # The environment variables OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME override these.
    resource = resources.Resource(about).merge(resources.OTELResourceDetector().detect())
    provider = sdk.TracerProvider(resource=resource)
    provider.add_span_processor(batches.BatchSpanProcessor(otlp.OTLPSpanExporter(endpoint)))
    trace.set_tracer_provider(provider)
