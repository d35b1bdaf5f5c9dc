"""Linking for pages: the core as one WebAssembly object, and wasm-ld, which puts a model to it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wherry import settings
from wherry.errors import ToolchainError

from .toolchain import Tool

CORE = "wherry-core.o"
CORE_FIX = (
    "apt-get install --no-install-recommends emscripten binaryen lld, and install wherry again "
    "(in a checkout: cmake -S web/core -B build/web && cmake --build build/web)"
)
_LINKERS = ("wasm-ld", *(f"wasm-ld-{version}" for version in range(22, 13, -1)))
_STACK_BYTES = 1 << 20
# The stack lies lowest: what runs over it traps, and writes over nothing.
_STACK = ("--stack-first", "-z", f"stack-size={_STACK_BYTES}")
_FLAGS = ("--no-entry", "--gc-sections", "--strip-all", *_STACK)


@dataclass(frozen=True, slots=True)
class WebToolchain:
    """See `Toolchain`. TVM generates all of the code; what it takes more is for linking."""

    def tools(self) -> tuple[Tool, ...]:
        """The core, and a linker."""
        core = find_core()
        return (
            Tool(name=CORE, found=str(core) if core else None, fix=CORE_FIX),
            Tool(name="wasm-ld", found=find_linker(), fix="apt-get install lld"),
        )

    def active(self) -> AbstractContextManager[None]:
        """Nothing to set up."""
        return nullcontext()

    def sources(self) -> dict[str, str]:
        """None: the module keeps it."""
        return {}


def find_core() -> Path | None:
    """The core: WHERRY_WEB_CORE, else in the installed package, else in a checkout's build."""
    if chosen := settings.web_core():
        return chosen if chosen.is_file() else None
    package = Path(settings.__file__).parent
    build = package.parents[1] / "build"
    places = (package / "web" / CORE, build / "web" / CORE, build / "dev" / "web" / CORE)
    return next((place for place in places if place.is_file()), None)


def core_digest() -> str:
    """SHA-256 of the core, which is a part of every model that is linked to it; "" without one."""
    core = find_core()
    return "" if core is None else _digest(core, core.stat().st_mtime_ns)


@cache
def _digest(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def find_linker() -> str | None:
    """Path of the first wasm-ld."""
    return next((found for name in _LINKERS if (found := shutil.which(name))), None)


class Linker:
    """`fcompile` of TVM's `export_library`: links a model's objects to the core."""

    object_format = "o"  # what export_library is to write

    def __call__(self, out: str, objects: Sequence[str], options: Sequence[str] = ()) -> None:
        """Make `out`, model.wasm.

        Raises:
            ToolchainError: a tool is not here, or the linker refuses; the message has its words.
        """
        core, linker = find_core(), find_linker()
        if core is None or linker is None:
            raise ToolchainError(f"{CORE} or wasm-ld is not here. Type: {CORE_FIX}")
        command = [linker, *_FLAGS, *options, str(core), *objects, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolchainError(f"{linker} could not link the model to {core}:\n{done.stderr}")
