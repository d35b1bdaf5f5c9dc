"""Links models for web pages: wasm-ld combines a model with the engine, a WebAssembly object.

The linker is LLVM's: the system's, or the one that zig has in the package ziglang, which needs
nothing else of the machine.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import wherry
from wherry.base import extras, settings
from wherry.errors import ToolchainError

from .toolchain import Requirement, require

_TOOLS = "apt-get install --no-install-recommends emscripten binaryen lld"
WEB_LLM = "web-llm"  # name of WebLLM's interface, and of the target's variant for it


@dataclass(frozen=True, slots=True, kw_only=True)
class WebCore:
    """A build of the engine that models for web pages are linked with."""

    name: str  # file name of the build
    fix: str  # command that installs it
    # functions to export in addition to those that are marked in the source
    exports: tuple[str, ...] = ()


# Interface -> engine build. WebLLM's tvmjs calls TVM's C functions.
CORES = {
    "": WebCore(
        name="wherry-core.o",
        fix=f"{_TOOLS} nodejs npm, and in a checkout: make browser",
    ),
    WEB_LLM: WebCore(
        name="wherry-web-llm.o",
        fix=f"{_TOOLS}, and in a checkout: "
        "cmake -S web/core -B build/web && cmake --build build/web --target web_llm",
        exports=(
            "TVMFFIAnyViewToOwnedAny",
            "TVMFFIDataTypeToString",
            "TVMFFIErrorSetRaisedFromCStr",
            "TVMFFIFunctionCall",
            "TVMFFIFunctionGetGlobal",
            "TVMFFIFunctionSetGlobal",
            "TVMFFIGetTypeInfo",
            "TVMFFIObjectDecRef",
            "TVMFFIObjectIncRef",
            "TVMFFITypeKeyToIndex",
        ),
    ),
}
CORE = CORES[""].name
_LINKERS = ("wasm-ld", *(f"wasm-ld-{version}" for version in range(22, 13, -1)))
_STACK_BYTES = 1 << 20
# The stack has the lowest addresses: an overflow traps and overwrites nothing.
_STACK = ("--stack-first", "-z", f"stack-size={_STACK_BYTES}")
_FLAGS = ("--no-entry", "--gc-sections", "--strip-all", *_STACK)
# The page's script provides the memory and shares it with the workers that run kernels; each worker
# has an instance, and sets its stack pointer. The linker does not compare features of the engine's
# objects: all but web/core/threads.cc are compiled for one thread, and other threads run only
# kernels' tasks.
_SHARED = (
    "--import-memory",
    "--shared-memory",
    f"--max-memory={1 << 32}",
    "--export=__stack_pointer",
    "--no-check-features",
)


@dataclass(frozen=True, slots=True)
class WebToolchain:
    """Toolchain that links WebAssembly; TVM generates all of the code. See `Toolchain`."""

    core: WebCore = CORES[""]

    def requirements(self) -> tuple[Requirement, ...]:
        """Return as requirements the engine build and a linker."""
        core, linker = find_core(self.core), find_linker()
        return (
            Requirement(
                name=self.core.name, installed=str(core) if core else None, fix=self.core.fix
            ),
            Requirement(
                name="wasm-ld",
                installed=" ".join(linker) if linker else None,
                fix=f"{extras.BROWSER}, or apt-get install lld",
            ),
        )

    def active(self) -> AbstractContextManager[None]:
        """Return a context without effect: linking needs no global settings."""
        return nullcontext()

    def sources(self) -> dict[str, str]:
        """Return {}: the runtime module already stores the generated code."""
        return {}


def find_core(core: WebCore = CORES[""]) -> Path | None:
    """Find an engine build: WHERRY_WEB_CORE, the installed package's, or a checkout's."""
    name = core.name
    if chosen := settings.web_core():
        place = chosen if name == CORE else chosen.with_name(name)
        return place if place.is_file() else None
    package = Path(wherry.__file__).parent
    build = package.parents[1] / "build"
    places = (package / "web" / name, build / "web" / name, build / "dev" / "web" / name)
    return next((place for place in places if place.is_file()), None)


def core_digest(interface: str | None = None) -> str:
    """Return the SHA-256 of the engine build, which every linked model contains; "" without one."""
    core = find_core(CORES[interface or ""])
    return "" if core is None else _digest(core, core.stat().st_mtime_ns)


@cache
def _digest(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def find_linker() -> list[str] | None:
    """Return the command of the first wasm-ld, or of the one in the package ziglang; else None."""
    if program := next((program for name in _LINKERS if (program := shutil.which(name))), None):
        return [program]
    zig = extras.zig()
    return [str(zig), "wasm-ld"] if zig else None


class Linker:
    """The `fcompile` argument of TVM's `export_library`: links a model's objects with the engine.

    Args:
        interface: key of `CORES`.
        threads: whether the CPU runs the kernels, perhaps on several threads.
    """

    def __init__(self, interface: str | None = None, *, threads: bool = False) -> None:
        self._core = CORES[interface or ""]
        self._memory = _SHARED if threads else ()

    object_format = "o"  # suffix of the object files that export_library writes

    def __call__(self, out: str, objects: Sequence[str], options: Sequence[str] = ()) -> None:
        """Link `out`, model.wasm.

        Raises:
            ToolchainError: a requirement is missing, or the linker fails; the message has its
                output.
        """
        build = self._core
        require("for browsers", WebToolchain(build).requirements())
        core, linker = find_core(build), find_linker()
        assert core is not None and linker is not None
        exports = [f"--export={name}" for name in build.exports]
        # With exported functions, the page's script provides undefined ones.
        flags = [*_FLAGS, *self._memory, *exports, *(["--allow-undefined"] if exports else [])]
        command = [*linker, *flags, *options, str(core), *objects, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolchainError(f"{linker[0]} could not link the model to {core}:\n{done.stderr}")
