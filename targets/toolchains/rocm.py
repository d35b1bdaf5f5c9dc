"""Links machine code for AMD's GPUs: LLVM's linker, ROCm's math library, and Wherry's barrier.

While a `RocmToolchain` is active, TVM links with them. The build needs neither a GPU nor a driver.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm_ffi
from tvm import IRModule, tirx
from tvm.ir import Call
from tvm_ffi import structural_map

from wherry.base import settings
from wherry.errors import ToolchainError

from .stderr_filter import without_lines
from .toolchain import ONE_AT_A_TIME, Requirement

OWN_CODE = Path(__file__).with_name("amdgcn.ll")
_BUILD = "target.build.rocm"
_LINK = "tvm_callback_rocm_link"
_BITCODE = "tvm_callback_rocm_bitcode_path"
# ROCm's bitcode libraries: functions, and constants that select variants with IEEE 754 results.
_LIBRARIES = (
    "ocml",
    "oclc_correctly_rounded_sqrt_on",
    "oclc_daz_opt_off",
    "oclc_finite_only_off",
    "oclc_unsafe_math_off",
)
_PLACES = (  # folders where ROCm, Debian and Fedora install them
    "opt/rocm*/amdgcn/bitcode",
    "usr/lib/*/amdgcn/bitcode",
    "usr/lib*/clang/*/amdgcn/bitcode",
    "usr/lib*/clang/*/lib/amdgcn/bitcode",
)
# Warnings of TVM to drop: it queries ROCm's driver, which its package has no code for, and warns at
# each kernel. The values that it assumes agree with Wherry's targets: code objects of ROCm 3.5 or
# later, 256 threads.
_NO_DRIVER = "Unable to detect ROCm version|Cannot get maximum number of threads for AMD codegen"
_LINKERS = ("usr/bin/ld.lld-*",)


@dataclass(frozen=True, slots=True)
class RocmToolchain:
    """Toolchain that links AMD machine code; see `Toolchain` for the methods.

    Args:
        wave: threads of a wave of the GPU: 32 or 64.
    """

    wave: int

    def sources(self) -> dict[str, str]:
        """Return {}: the runtime module already stores the generated code."""
        return {}

    def requirements(self) -> tuple[Requirement, ...]:
        """Return as requirements the linker and ROCm's device libraries."""
        linker, libraries = find_linker(), find_libraries()
        return (
            Requirement(name="ld.lld", installed=linker, fix="apt-get install lld"),
            Requirement(
                name="ROCm's device libraries",
                installed=None if libraries is None else str(libraries),
                fix="apt-get install rocm-device-libs",
            ),
        )

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make TVM link with these programs while the context is entered."""
        linker, libraries = find_linker(), find_libraries()
        assert linker and libraries, "entered when no requirement is missing"
        build = tvm_ffi.get_global_func(_BUILD)
        bitcode = [*_LIBRARIES, f"oclc_wavefrontsize64_{'on' if self.wave == 64 else 'off'}"]
        files = [*(str(libraries / f"{name}.bc") for name in bitcode), str(OWN_CODE)]
        with ONE_AT_A_TIME, without_lines(_NO_DRIVER), ExitStack() as stack:
            for name, function in (
                (_BUILD, lambda mod, target: build(_with_barriers(mod), target)),
                (_BITCODE, lambda: files),
                (_LINK, lambda code: link(bytes(code), linker)),
            ):
                stack.enter_context(_registered(name, function))
            yield


def link(code: bytes, linker: str) -> bytes:
    """Link an object file into the shared library that ROCm loads.

    Raises:
        ToolchainError: linking failed, for example because of a missing function; the message has
            the linker's output.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.o"
        path.write_bytes(code)
        linked = path.with_suffix(".hsaco")
        command = [linker, "--no-undefined", "-shared", str(path), "-o", str(linked)]
        done = subprocess.run(command, capture_output=True)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip()[-2000:]
            raise ToolchainError(f"{linker} cannot link the kernels:\n{words}")
        return linked.read_bytes()


def find_linker() -> str | None:
    """Return the path of ld.lld: in PATH, ROCm's, or one with a version in its name; else None."""
    if path := shutil.which("ld.lld"):
        return path
    versioned = (p for place in _LINKERS for p in sorted(Path("/").glob(place), reverse=True))
    places = (_rocm() / "llvm" / "bin" / "ld.lld", *versioned)
    return next((str(place) for place in places if place.is_file()), None)


def find_libraries() -> Path | None:
    """Return the folder of ROCm's device libraries; None: not found."""
    own = _rocm() / "amdgcn" / "bitcode"
    for folder in (own, *(p for place in _PLACES for p in sorted(Path("/").glob(place)))):
        if all((folder / f"{name}.bc").is_file() for name in _LIBRARIES):
            return folder
    return None


def _rocm() -> Path:
    return settings.rocm_path() or Path("/opt/rocm")


def _with_barriers(mod: IRModule) -> IRModule:
    """Replace TVM's barriers by calls of the barrier in amdgcn.ll."""

    def rewrite(call: Call) -> Any:
        if getattr(call.op, "name", "") != "tirx.tvm_storage_sync":
            return call
        assert call.args[0].value == "shared", call
        return tirx.call_extern("void", "wherry_barrier")

    for var, func in mod.functions_items():
        mod[var] = func.with_body(structural_map(func.body, (Call, rewrite)))
    return mod


@contextmanager
def _registered(name: str, function: Callable[..., Any]) -> Iterator[None]:
    before = tvm_ffi.get_global_func(name)
    tvm_ffi.register_global_func(name, function, override=True)
    try:
        yield
    finally:
        tvm_ffi.register_global_func(name, before, override=True)
