"""Sends a load test's requests over HTTP to a server with OpenAI's API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import h11

from wherry.errors import ModelError, UsageError

from .connection import Connection, ConnectionLostError, OnData, TargetAddress
from .outcome import Outcome
from .sse import DONE, Events

_LONGEST_MESSAGE = 300  # characters of a server's error message in an outcome
_REFUSED = (400, 422)
# Errors of an exchange; until Python 3.11 asyncio has its own class of timeouts.
_FAILURES = (OSError, h11.RemoteProtocolError, asyncio.TimeoutError)


class HttpTarget:
    """Load-test target that is one model of one server; see `outcome.Target`.

    Args:
        address: address of the API.
        model: the model's name at the server.
        api_key: key sent with each request; None: no key.
        timeout: seconds of one request.
    """

    def __init__(
        self,
        address: TargetAddress,
        model: str = "",
        api_key: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.model = model
        self._address = address
        self._timeout = timeout
        self._idle: list[Connection] = []
        self._headers = [("Host", address.authority), ("Accept", "*/*"), ("User-Agent", "wherry")]
        if api_key:
            self._headers.append(("Authorization", f"Bearer {api_key}"))

    @property
    def name(self) -> str:
        """Return the URL and the model, for display."""
        return f"{self.model} at {self._address}" if self.model else str(self._address)

    async def models(self) -> list[str]:
        """List the server's models.

        Raises:
            ModelError: the server does not answer with a list.
        """
        path = f"{self._address.path}/models"
        status, body = await self._get(path)
        listed = _names(status, body, "data", "id")
        if listed is None:
            raise ModelError(
                f"{self._address}/models answered {_refusal(status, body)}. "
                "Is this OpenAI's API? Type its base: --url http://127.0.0.1:8000/v1"
            )
        return listed

    async def loaded(self) -> list[str]:
        """List the loaded models by Ollama's API, else as `models`.

        Raises:
            ModelError: the server does not answer with a list.
        """
        listed = _names(*await self._get("/api/ps"), "models", "name")
        if listed is None:
            return await self.models()
        return [name.removesuffix(":latest") for name in listed]

    async def _get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET request.

        Raises:
            ModelError: the server does not respond.
        """
        body = bytearray()
        try:
            response = await self._exchange("GET", path, b"", lambda _, d: body.extend(d))
        except _FAILURES as e:
            raise ModelError(f"{self._address} cannot be reached: {_reason(e)}") from e
        return int(response.status_code), bytes(body)

    async def takes(self, body: Mapping[str, Any]) -> bool:
        """Return whether the server accepts a request; False if it rejects a field.

        Raises:
            UsageError: the server responds with another error.
        """
        outcome = Outcome(due=0)
        status = await self._stream(body, outcome)
        if outcome.error is None or status in _REFUSED:
            return outcome.error is None
        raise UsageError(f"{self.name} does not answer: {outcome.error}")

    async def ask(self, body: Mapping[str, Any], outcome: Outcome) -> None:
        """Send one request and record its outcome."""
        await self._stream(body, outcome)

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    async def _stream(self, body: Mapping[str, Any], outcome: Outcome) -> int | None:
        """Send one request; return the status of its response, None without a response."""
        path = self._address.path
        path += "/chat/completions" if "messages" in body else "/completions"
        options = {"stream": True, "stream_options": {"include_usage": True}}
        data = json.dumps({"model": self.model, **body, **options}).encode()
        events = Events()
        try:
            response = await self._exchange("POST", path, data, events.feed)
        except _FAILURES as e:
            read_events(events, outcome)  # events that arrived before an error count
            outcome.error = _reason(e)
            return None
        if response.status_code != 200:
            outcome.error = _refusal(response.status_code, events.text)
        elif not read_events(events, outcome) and outcome.error is None:
            outcome.error = "the stream ended without [DONE]"
        return int(response.status_code)

    async def _exchange(self, method: str, path: str, body: bytes, on_data: OnData) -> h11.Response:
        """Send one HTTP request on an idle connection, or on a new one.

        Return the response's head.
        """
        headers = list(self._headers)
        if body:
            headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        request = h11.Request(method=method, target=path, headers=headers)
        return await asyncio.wait_for(self._attempt(request, body, on_data), self._timeout)

    async def _attempt(self, request: h11.Request, body: bytes, on_data: OnData) -> h11.Response:
        while True:
            used = next((c for c in iter(self._take_idle, None) if c.reusable), None)
            connection = used or await Connection.open(self._address)
            try:
                response = await connection.exchange(request, body, on_data)
            except ConnectionLostError as e:
                # the server closed the idle connection before it read the request
                if used and e.unanswered:
                    continue
                raise
            if connection.reusable:
                self._idle.append(connection)
            return response

    def _take_idle(self) -> Connection | None:
        return self._idle.pop() if self._idle else None


def read_events(events: Events, outcome: Outcome) -> bool:
    """Record a stream's events in `outcome`; return whether the stream is complete."""
    for when, data in events.data:
        if data == DONE:
            return True
        try:
            chunk = json.loads(data)
        except ValueError:
            outcome.error = f"an event that is not JSON: {data[:80]!r}"
            return False
        if chunk.get("error"):
            outcome.error = _message(chunk)
            return False
        if any(map(_has_text, chunk.get("choices") or ())):
            outcome.pieces.append(when)
        if usage := chunk.get("usage"):
            outcome.count(usage)
    return False


def _names(status: int, body: bytes, listed: str, named: str) -> list[str] | None:
    """Return the models' names in a response; None if it is no list of models."""
    try:
        rows = json.loads(body)[listed] if status == 200 else None
        return None if rows is None else [str(row[named]) for row in rows]
    except (ValueError, KeyError, TypeError):
        return None


def _has_text(choice: Mapping[str, Any]) -> bool:
    if choice.get("text"):
        return True
    delta = choice.get("delta") or {}
    names = ("content", "reasoning_content", "reasoning", "tool_calls")
    return any(delta.get(name) for name in names)


def _refusal(status: int, text: bytes) -> str:
    try:
        said = _message(json.loads(text))
    except (ValueError, AttributeError):
        said = " ".join(text.decode(errors="replace").split())[:_LONGEST_MESSAGE]
    return f"{status}: {said}" if said else str(status)


def _message(body: Any) -> str:
    """Return the message of an error response of OpenAI, Ollama or FastAPI."""
    error = body.get("error") or body.get("detail") or body
    said = error.get("message", error) if isinstance(error, dict) else error
    return " ".join(str(said).split())[:_LONGEST_MESSAGE]


def _reason(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError) and not str(error):
        return "timed out"
    return str(error) or type(error).__name__
