"""Ollama's /api/pull: downloads, compiles and serves a model of the Hugging Face hub.

It writes to the disk and uses the processor for minutes, so only an option of the server allows it,
with or without a key: keys are for clients that use models, not for those who choose them. A
separate process does the work (`pull_process`), with its own memory and GIL, and ends when its
client disconnects. Its results stay, and the next pull resumes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import wherry
from wherry.errors import ModelError

from ....answers import Shape
from ....errors import RequestError
from ....load.options import for_compiler, for_engine
from ...catalog.catalog import Catalog
from ...catalog.listing import Spec
from ...catalog.prepared import prepare
from ...models import LATEST, named
from ...pipeline import CLIENT_GONE, body_of
from ...wire.errors import ApiError
from ...wire.json_body import parse_json
from ...wire.streams import ClientGone, StreamedAnswer, while_connected
from ..described import TEXT, described, object_of
from ..routes import Routes
from .ollama import FRAMING
from .parsing import validated
from .requests import ShowRequest

_PART = r"[A-Za-z0-9][\w.-]*"
_HUB = re.compile(
    rf"(?:hf://|(?:https://)?(?:hf\.co|huggingface\.co)/)?({_PART}/{_PART})(@[\w./-]+)?(?::(\w+))?"
)
_PHASES = {"download": "downloading", "convert": "converting weights", "compile": "compiling"}


@dataclass(slots=True)
class Status(Shape):
    """A chunk with the progress of a pull."""

    _optional = frozenset({"total", "completed"})
    status: str
    total: int | None = None  # bytes of a download, or the number of steps
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class PullSpec:
    """A model to pull: a MODEL of the command line, and the model's name for clients."""

    model: str
    name: str
    quant: str | None
    aliases: tuple[str, ...] = ()


class PullRequest(ShowRequest):
    """The body of POST /api/pull."""

    stream: bool | None = None


class Pull:
    """The handler of POST /api/pull.

    Args:
        catalog: the catalog that gets the model; None: the server has only one model.
        allowed: whether the server's options allow pulls.
    """

    def __init__(self, catalog: Catalog | None, *, allowed: bool) -> None:
        self._catalog = catalog
        self._allowed = allowed
        self._turn = asyncio.Lock()

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        return {("POST", "/api/pull"): self.pull}

    @described(
        request=PullRequest,
        answer=object_of(status=TEXT),
        chunk=Status,
        stream=FRAMING.media_type,
    )
    async def pull(self, request: Request) -> Response:
        """Downloads, compiles and adds a model of the hub; streams the progress."""
        catalog = self._checked()
        fields = validated(PullRequest, parse_json(await body_of(request)))
        known = (
            named({m.name: m for m in catalog.listed()}, fields.requested)
            if fields.requested
            else None
        )
        spec = None if known else spec_of(fields.requested)
        statuses = _Statuses(catalog, spec, self._turn)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(statuses.end)
            if fields.stream is not False:
                return StreamedAnswer(statuses, FRAMING, {}, stack.pop_all())
            try:
                await while_connected(request.receive, statuses.all())
            except ClientGone:
                return Response(status_code=CLIENT_GONE)
            return JSONResponse({"status": "success"})

    def _checked(self) -> Catalog:
        if not self._allowed:
            raise ApiError(
                403,
                "This server pulls no models: it writes to its disk, and compiles. Start it with "
                "--allow-pull.",
                code="pull_not_allowed",
            )
        if self._catalog is None:
            raise ApiError(
                403,
                "This server has one model, and no place for others. Start it with --models.",
                code="pull_not_allowed",
            )
        return self._catalog


class _Statuses:
    """A stream of a pull's progress, with the interface of an engine's stream.

    Args:
        wanted: the model to pull; None: the server already has it.
        turn: a lock, so that one model is pulled at a time.
    """

    def __init__(self, catalog: Catalog, spec: PullSpec | None, turn: asyncio.Lock) -> None:
        self._catalog, self._spec, self._turn = catalog, spec, turn
        self._process: asyncio.subprocess.Process | None = None
        self._has_turn = self._said_to_wait = self._ended = False

    async def all(self) -> None:
        """Await the end of the pull.

        Raises:
            WherryError: the pull failed.
        """
        while await self.batch():
            pass

    async def batch(self) -> list[dict[str, Any]]:
        """Await new progress; [] at the end.

        Raises:
            WherryError: the pull failed.
        """
        if self._ended:
            return []
        if self._spec is None:
            self._ended = True
            return [Status("success").model_dump()]
        if self._turn.locked() and not self._has_turn and not self._said_to_wait:
            self._said_to_wait = True
            return [Status("waiting for another pull").model_dump()]
        if self._process is None:
            await self._turn.acquire()
            self._has_turn = True
            self._process = await self._start(self._spec)
            return [Status(f"pulling {self._spec.name}").model_dump()]
        assert self._process.stdout
        line = await self._process.stdout.readline()
        if not line:
            code = await self._process.wait()
            raise ModelError(f"{self._spec.model} was not pulled: its process ended with {code}")
        return [(await self._status(json.loads(line), self._spec)).model_dump()]

    async def _status(self, message: dict[str, Any], pulled: PullSpec) -> Status:
        if "error" in message:
            raise ModelError(message["error"])
        if "folder" not in message:
            phase = _PHASES.get(message["what"], message["what"])
            return Status(phase, message["total"], message["done"])
        # The model is compiled already, so its preparation does not load the compiler.
        spec = Spec(
            name=pulled.name,
            model=message["folder"],
            aliases=pulled.aliases,
            keep_alive=self._catalog.keep_alive,
            options=for_engine(self._catalog.defaults),
        )
        self._catalog.add(await asyncio.to_thread(prepare, spec))
        self._ended = True
        return Status("success")

    async def _start(self, spec: PullSpec) -> asyncio.subprocess.Process:
        options: dict[str, Any] = dict(for_compiler(self._catalog.defaults))
        if spec.quant:
            options["quant"] = spec.quant
        root = Path(wherry.__file__).parent.parent
        module = f"{__package__}.pull_process"
        program = (
            f"import sys; sys.path.insert(0, {str(root)!r}); from {module} import main; main()"
        )
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            json.dumps([spec.model, options]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C must reach only the server, which ends this process itself
            start_new_session=True,
        )

    def cancel(self) -> None:
        """End the pull's process; idempotent."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        if self._has_turn:
            self._has_turn = False
            self._turn.release()

    async def end(self) -> None:
        """End the pull's process and wait for its end."""
        self.cancel()
        if self._process is not None:
            assert self._process.stdout
            await self._process.stdout.read()
            await self._process.wait()


def spec_of(requested: str) -> PullSpec:
    """Return the model that a client names.

    Args:
        requested: the name: "demo", ORG/NAME, or hf.co/ORG/NAME; the tag may be a scheme,
            ORG/NAME:q8f16_1.

    Raises:
        RequestError: the name is none of these, but a path or a name in Ollama's library.
    """
    plain = requested.removesuffix(LATEST)
    if plain == "demo":
        return PullSpec("demo", "demo", None)
    match = _HUB.fullmatch(plain)
    if not match:
        raise RequestError(
            f"{requested[:100]!r} cannot be pulled. Ollama's own library has weights in files of "
            "other layouts; here models come from the Hugging Face hub: ORG/NAME, or "
            "ORG/NAME:SCHEME, as Qwen/Qwen3-0.6B:q8f16_1",
            param="model",
        )
    repository, revision, quant = match[1], match[2] or "", match[3]
    name = repository + (f":{quant}" if quant else "")
    return PullSpec(f"hf://{repository}{revision}", name, quant, (plain,) if plain != name else ())
