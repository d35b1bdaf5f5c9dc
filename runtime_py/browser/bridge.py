"""Calls the npm package's engine in JavaScript and converts its responses."""

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

from ..errors import RequestError

Result = TypeVar("Result")
# receives the phase's name, the units done and the units in total
Progress = Callable[[str, int, int], None]

# `make pyodide` bundles these scripts: web/src/python.ts with its imports, and the grammar module.
SCRIPT, GRAMMAR = "engine.js", "grammar.js"
MANIFEST = "wherry.json"
# Request fields that constrain the output by a grammar.
_CONSTRAINTS = {
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "json_schema",
}
_CONSTRAINTS |= {"response_format", "structured_outputs", "tools"}
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
    """Block until a coroutine is done; the engine's steps run in the page's tasks meanwhile.

    Raises:
        ToolchainError: this browser has no JavaScript Promise Integration, or JavaScript called
            Python by a call that cannot be suspended.
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
    """Import a JavaScript module of the package once; the result can be awaited."""
    script = files(__package__).joinpath(name).read_bytes()
    address = "data:text/javascript;base64," + base64.b64encode(script).decode()
    return run_js("(address) => import(address)")(address)


class Bridge:
    """The connection from Python to one JavaScript engine with one model."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._ids = itertools.count()

    def next_id(self) -> int:
        """Return a new number that identifies a request on the JavaScript side."""
        return next(self._ids)

    async def load(
        self,
        model: str | Path | Sequence[str],
        limits: Mapping[str, Any],
        progress: Progress | None,
    ) -> dict[str, Any]:
        """Load a model and return the package's report.

        Args:
            model: a folder of Python's own file system, an address, or a list of addresses, of
                which the first that this device can run is loaded.
            limits: the engine's options (engine/config/config.h).
            progress: called with a phase and its progress.
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
        """Await the whole response to a request."""
        await _prepare(fields)
        return dict(_result(await self._engine.ask(request, endpoint, json.dumps(fields))))

    async def open(self, request: int, endpoint: str, fields: Mapping[str, Any]) -> None:
        """Start a request whose response is streamed in chunks."""
        await _prepare(fields)
        _result(await self._engine.open(request, endpoint, json.dumps(fields)))

    async def next(self, request: int) -> dict[str, Any] | None:
        """Await the next chunk of a stream; None after the last one."""
        chunk = _result(await self._engine.next(request))
        return None if chunk is None else dict(chunk)

    def end(self, request: int) -> None:
        """Abort a request and free its pages; a request that has ended is ignored."""
        if self._engine is not None:
            self._engine.end(request)

    async def stats(self) -> dict[str, Any]:
        """Return the core's counters, with the npm package's names."""
        return dict(_result(await self._engine.stats()))

    async def dispose(self) -> None:
        """End all requests and free the model."""
        if self._engine is not None:
            _result(await self._engine.dispose())


async def _prepare(fields: Mapping[str, Any]) -> None:
    """Import the JavaScript modules that only some requests need, such as the one for grammars."""
    given = {name for name, value in fields.items() if value}
    plain = dict(fields.get("response_format") or {}).get("type", "text") == "text"
    if given & _CONSTRAINTS - ({"response_format"} if plain else set()):
        await _module(GRAMMAR)


def _silent(_what: str, _done: int, _total: int) -> None:
    """Ignore progress: the callback for callers that pass none."""


def _result(said: str) -> Any:
    """Return the result of a call to JavaScript, which answers in JSON.

    Raises:
        WherryError: the call threw an error; it has the class that Python's engine raises.
    """
    outcome = json.loads(said)
    if "error" not in outcome:
        return outcome["result"]
    error = outcome["error"]
    if error["code"] == "invalid_request":
        fields = error["fields"]
        raise RequestError(error["message"], param=fields.get("param"), code=fields.get("reason"))
    raise _CLASSES.get(error["code"], WherryError)(error["message"])
