"""Runs naga, which compiles WGSL to SPIR-V: npm package naga-wasm in Node, or program `naga`."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wherry import tools
from wherry.base import settings
from wherry.errors import ToolchainError, WherryError, listing

from ..toolchains.toolchain import Requirement

VERSION = tools.NAGA  # version of naga-wasm
FILES = {  # files of naga-wasm's dist/wasm, with their SHA-256
    "naga.js": "1338164cbc245394fe22309e2a89f1cd24a83733b23db4c97478c5f13b2c7e0d",
    "naga_bg.wasm": "c7c5cd7322c14c5a0da57bf707fef71d1a51ee2c5094c0786d8216e04cfee4de",
}
NODE_FIX = "apt-get install nodejs npm (or from https://nodejs.org, 18 or later)"
_DRIVER = Path(__file__).with_name("naga.mjs")
_SECONDS = 600  # timeout in seconds, longer than any model takes


def requirements() -> tuple[Requirement, ...]:
    """Return naga as requirements: the program if only it is found, else Node and the package."""
    node, program = shutil.which("node"), shutil.which("naga")
    package = _package()
    if program and not (node and package):
        return (Requirement(name="naga", installed=program, fix="cargo install naga-cli"),)
    fix = f"npm install --prefix {settings.toolchain_dir()} naga-wasm@{VERSION}"
    return (
        Requirement(name="node", installed=node, fix=NODE_FIX),
        Requirement(
            name=f"naga-wasm {VERSION}",
            installed=str(package) if package else None,
            fix=fix + _why(),
        ),
    )


def compile_wgsl(kernels: Mapping[str, str]) -> dict[str, bytes]:
    """Compile WGSL kernels to SPIR-V, by name; Node compiles all of them in one process.

    Raises:
        ToolchainError: naga is missing, or failed.
        WherryError: naga rejects a kernel; the message has its output.
    """
    node, package = shutil.which("node"), _package()
    if node and package:
        return _with_node(node, package, kernels)
    if program := shutil.which("naga"):
        return {name: _with_program(program, name, text) for name, text in kernels.items()}
    raise ToolchainError(f"naga is not installed. Type: {requirements()[-1].fix}")


def _folder() -> Path:
    return settings.toolchain_dir() / "node_modules" / "naga-wasm" / "dist" / "wasm"


def _package() -> Path | None:
    """Return the folder of naga-wasm's files, if their hashes match; else None."""
    folder = _folder()
    for name, digest in FILES.items():
        path = folder / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return None
    return folder


def _why() -> str:
    return " (the one there is another version, or damaged)" if _folder().is_dir() else ""


def _with_node(node: str, package: Path, kernels: Mapping[str, str]) -> dict[str, bytes]:
    done = _run([node, str(_DRIVER), str(package)], json.dumps(dict(kernels)))
    answer = json.loads(done)
    if answer["problems"]:
        problems = [f"{name}: {words}" for name, words in answer["problems"].items()]
        raise WherryError(f"naga refuses kernels that TVM wrote:\n{listing(problems)}")
    return {name: base64.b64decode(code) for name, code in answer["spirv"].items()}


def _with_program(program: str, name: str, source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        wgsl, spirv = Path(folder, f"{name}.wgsl"), Path(folder, f"{name}.spv")
        wgsl.write_text(source)
        _run([program, "--keep-coordinate-space", str(wgsl), str(spirv)], "")
        return spirv.read_bytes()


def _run(command: list[str], text: str) -> str:
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ToolchainError(f"{command[0]} could not be run: {e}") from e
    if done.returncode:
        raise ToolchainError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout
