"""The npm package's engine on the other side of Pyodide's border, and how its answers come back."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pyodide.code import run_js
from pyodide.ffi import can_run_sync, create_proxy, run_sync, to_js

from wherry.errors import ArtifactError, ResourceError, ToolchainError, WherryError

from ..request.errors import RequestError

Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]  # what, done, in all

# Made by `make pyodide`: web/src/python.ts with all that it imports, and the library for grammars.
SCRIPT, GRAMMAR = "engine.js", "grammar.js"
MANIFEST = "wherry.json"
_CLASSES: Mapping[str, type[WherryError]] = {
    "damaged_file": ArtifactError,
    "device_lost": ResourceError,
    "download_failed": ArtifactError,
    "incompatible_model": ArtifactError,
    "missing_feature": ToolchainError,
    "out_of_memory": ResourceError,
    "quota_exceeded": ResourceError,
}


def wait(work: Coroutine[Any, Any, Result]) -> Result:
    """Block until a coroutine is done, while the page goes on: the engine's steps are its tasks.

    Raises:
        ToolchainError: this browser cannot (it has no JavaScript Promise Integration), or Python
            was entered by a call that cannot be suspended.
    """
    if not can_run_sync():
        work.close()
        raise ToolchainError(
            "This browser cannot wait inside synchronous code (WebAssembly.Suspending, which "
            "Chromium has from version 137), or Python was not entered by runPythonAsync. "
            'Type: async with AsyncMLCEngine("...") as engine'
        )
    return run_sync(work)  # type: ignore[no-any-return]


@cache
def _module(name: str) -> Any:
    """The module of a script: an awaitable, the same for all."""
    script = files(__package__).joinpath(name).read_bytes()
    address = "data:text/javascript;base64," + base64.b64encode(script).decode()
    return run_js("(address) => import(address)")(address)


class Bridge:
    """One engine of the package, with one model."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._ids = itertools.count()

    def next_id(self) -> int:
        """A number for a request."""
        return next(self._ids)

    async def load(
        self,
        model: str | Path | Sequence[str],
        limits: Mapping[str, Any],
        progress: Progress | None,
    ) -> dict[str, Any]:
        """Load a model; what the package says of it.

        Args:
            model: a folder of Python's own file system; else an address, or several of variants, of
                which the first that this device can run is taken.
            limits: of the engine (engine/abi/config.h).
            progress: called with a phase, and how much of it is done.
        """
        self._engine = (await _module(SCRIPT)).pythonEngine()
        addresses = [str(model)] if isinstance(model, str | Path) else list(model)
        if isinstance(model, str | Path) and Path(model, MANIFEST).is_file():
            addresses = []
            for path in sorted(Path(model).iterdir()):
                if path.is_file():
                    self._engine.file(path.name, to_js(path.read_bytes()))
        heard = create_proxy(progress or _silent)
        try:
            said = await self._engine.load(json.dumps(addresses), json.dumps(limits), heard)
        finally:
            heard.destroy()
        return dict(_result(said))

    async def ask(self, request: int, endpoint: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The whole answer to a request."""
        await _prepare(fields)
        return dict(_result(await self._engine.ask(request, endpoint, json.dumps(fields))))

    async def open(self, request: int, endpoint: str, fields: Mapping[str, Any]) -> None:
        """Begin a request whose answer comes in chunks."""
        await _prepare(fields)
        _result(await self._engine.open(request, endpoint, json.dumps(fields)))

    async def next(self, request: int) -> dict[str, Any] | None:
        """The next chunk; None after the last one."""
        chunk = _result(await self._engine.next(request))
        return None if chunk is None else dict(chunk)

    def end(self, request: int) -> None:
        """End a request and free its pages; one that has ended already is left alone."""
        if self._engine is not None:
            self._engine.end(request)

    async def stats(self) -> dict[str, Any]:
        """The core's counters, under the names that the package has for them."""
        return dict(_result(await self._engine.stats()))

    async def dispose(self) -> None:
        """End all requests and free the model."""
        if self._engine is not None:
            _result(await self._engine.dispose())


async def _prepare(fields: Mapping[str, Any]) -> None:
    """Load what only some requests need."""
    if dict(fields.get("response_format") or {}).get("type", "text") != "text":
        await _module(GRAMMAR)


def _silent(_what: str, _done: int, _total: int) -> None:
    """Where nobody asked."""


def _result(said: str) -> Any:
    """What a call gave.

    Raises:
        WherryError: what it threw, as the class that Python's engine has for it.
    """
    outcome = json.loads(said)
    if "error" not in outcome:
        return outcome["result"]
    error = outcome["error"]
    if error["code"] == "invalid_request":
        raise RequestError(error["message"], param=error["fields"].get("param"))
    raise _CLASSES.get(error["code"], WherryError)(error["message"])
