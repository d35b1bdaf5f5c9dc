"""A server on a free loopback port, in a thread."""

from __future__ import annotations

import contextlib
import threading
import time

import uvicorn

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.server.defaults import MAX_BODY
from wherry.runtime.server.wire.http_protocol import ConnectionLimits, ServerConfig


@contextlib.contextmanager
def live(model, limits=None, **options):
    """Yields the base URL of an app over `model`, or over several (`Models`)."""
    engine = MLCEngine.of(model) if isinstance(model, LoadedModel) else model
    app = create_app(engine, **options)
    config = ServerConfig(
        app,
        limits or ConnectionLimits(),
        host="127.0.0.1",
        port=0,
        log_level="warning",
        timeout_graceful_shutdown=2,
        ws_max_size=options.get("max_body", MAX_BODY),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 10
    while not server.started:
        assert time.monotonic() < end and thread.is_alive()
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
