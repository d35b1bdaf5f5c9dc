"""The server's main loop: it listens, watches the engine, drains, and ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from wherry.errors import UsageError, WherryError

from .endpoints.status import Status
from .guard.keys import KeyRing
from .life import Life
from .listening import Address, load_certificate, unix_socket
from .wire.http_protocol import ServerConfig

_log = logging.getLogger(__name__)
_FULL_LOG_SECONDS = 60  # seconds between two log lines about a full table of open files
_LOOK_TICKS = 10  # number of ticks, of 0.1 s each, between two checks of the engine
_FAILING_SECONDS = 30.0  # seconds after which the process ends if every step of the engine fails
_EXIT_STUCK = 1
# Seconds for which a thread may keep the GIL. The loop releases the GIL at each read and write, and
# then waits this long for a thread that runs Python: a fifth of Python's default.
_SWITCH_SECONDS = 0.001
_LAST_WORDS_SECONDS = 5.0  # seconds that the clients of a hung engine get to receive an error


class RunningServer(uvicorn.Server):
    """Uvicorn's server, with a drain that answers probes, and a check of the engine.

    Uvicorn itself stops listening at the first signal, so a load balancer would see refused
    connections before it learns that this server is not ready.

    Args:
        config: uvicorn's configuration.
        address: the address to listen on.
        keys: the keys of clients, which are read again at SIGHUP.
        life: the server's state.
        status: the engines' state.
        drain_seconds: seconds that running requests may take after the first signal.
        exit_when_stuck: whether the process ends when the engine has failed or is stuck.
        on_ready: callback with the server's URL when it listens.

    Attributes:
        ends_process: whether the process must be ended, because the engine hangs and cannot be
            closed.
    """

    config: ServerConfig

    def __init__(
        self,
        config: ServerConfig,
        address: Address,
        keys: KeyRing,
        life: Life,
        status: Status,
        *,
        drain_seconds: float,
        exit_when_stuck: bool,
        on_ready: Callable[[str], None] | None,
    ) -> None:
        super().__init__(config)
        self._address = address
        self._keys = keys
        self._life = life
        self._status = status
        self._drain_seconds = drain_seconds
        self._exit_when_stuck = exit_when_stuck
        self._on_ready = on_ready
        self._said_status = "ok"
        self._bad_since = 0.0
        self.ends_process = False

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve requests until a signal arrives.

        Raises:
            UsageError: the address is taken.
        """
        uds = self._address.uds
        if uds is None:
            super().run(sockets)
            return
        with unix_socket(uds, self._address.uds_mode) as bound:
            super().run([bound])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen on the address."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_QuietAccept())
        if hasattr(signal, "SIGHUP") and _in_main_thread():
            loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            await super().startup(sockets)
        except SystemExit as e:  # uvicorn has logged the reason already
            where = f"{self.config.host}:{self.config.port}"
            raise UsageError(
                f"Cannot listen on {where}; its log above says why. Choose another --port."
            ) from e
        if self._on_ready and self.started:
            self._on_ready(self._address.url(self.servers[0].sockets[0]))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal; end at the second."""
        if not self._life.draining:
            self._captured_signals.append(sig)
            self._life.drain(self._drain_seconds)
        else:
            self.config.timeout_graceful_shutdown = 0
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Check the state ten times a second; return whether to end."""
        if counter % _LOOK_TICKS == 0:
            self._look()
        if self._life.drained and not self.should_exit:
            if self._life.active:
                self.config.timeout_graceful_shutdown = 0
            self.should_exit = True
        return await super().on_tick(counter)

    def _look(self) -> None:
        """Log when the engine gets stuck or recovers; end a stuck process if the options say so."""
        status, now = self._status.status(), time.monotonic()
        if status != self._said_status:
            self._say(status)
            self._said_status, self._bad_since = status, now
        if status == "ok" or not self._exit_when_stuck:
            return
        if status != "failing" or now - self._bad_since > _FAILING_SECONDS:
            _log.critical("The engine is %s: the process ends (--exit-when-stuck)", status)
            self.config.timeout_graceful_shutdown = 0
            self.should_exit = self.ends_process = True
            last_words = threading.Timer(_LAST_WORDS_SECONDS, end_process)
            last_words.daemon = True
            # a thread sends them, because this loop may block on the engine, too
            last_words.start()

    def _say(self, status: str) -> None:
        if status == "ok":
            _log.warning("The engine makes progress again")
            return
        texts = {
            "stuck": "there is work, and nothing moves: the device may hang",
            "failing": "steps of the model fail: the device may be lost",
            "failed": "no request can be served any more",
        }
        active = self._life.active
        _log.error("The engine is %s, with %d requests running: %s", status, active, texts[status])

    def _reload(self) -> None:
        """Read keys and certificates again; unusable files change nothing."""
        try:
            self._keys.reload()
            if self._address.tls_cert and self.config.ssl:
                load_certificate(self.config.ssl, self._address)
            _log.warning("SIGHUP: the files of keys and certificates were read again")
        except WherryError as e:
            _log.error("SIGHUP: nothing has changed. %s", e)


class _QuietAccept:
    """Logs only once a minute that no connection can be accepted, where asyncio logs without end.

    Python 3.11 retries `backlog` times after such an error, with a traceback each time.
    """

    def __init__(self) -> None:
        self._said = -float(_FULL_LOG_SECONDS)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "accept" not in context.get("message", "") or not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif time.monotonic() - self._said >= _FULL_LOG_SECONDS:
            self._said = time.monotonic()
            _log.warning("No connection can be accepted: %s. Raise the limit: ulimit -n", error)


@contextlib.contextmanager
def quiet_signals() -> Iterator[None]:
    """Let SIGTERM end `run` normally: uvicorn raises it again after its own shutdown."""
    if not _in_main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def end_process() -> None:
    """End the process at once: a hung device blocks threads that nothing can end."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_EXIT_STUCK)
