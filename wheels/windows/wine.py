"""Installs a Windows wheel in a Python of Windows, under Wine, and checks it there.

    python -m wheels.windows.wine dist/wherry-...-win_amd64.whl build/wheels/wine [STEP ...]

No registry here has Python's installer. panda3d's wheel brings python311.dll and the modules that
are libraries, for programs that it freezes; Debian's python3.11 has the others, which are text.
Wine 8 differs from Windows in what `make_python` adds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from ..bare_root import Debian, unpack
from ..machines import here
from ..sources import PIP, zig
from .symbols import exports

HERE = Path(__file__).resolve().parent
PYTHON = "panda3d==1.10.16"
MODULES = ("libpython3.11-minimal", "libpython3.11-stdlib")
# What pip asks for on Windows alone, and the last NumPy that takes no function that Wine 8 lacks.
ALSO = ("colorama", "numpy==2.0.2")
STEPS = ("run", "doctor", "compile", "serve")  # the others read /proc
FOR_WINDOWS = ("--only-binary=:all:", "--platform", "win_amd64", "--python-version", "3.11")


def wine(root: Path, *command: str) -> None:
    """Run a program of Windows; `root` has Wine's own files, too."""
    program = shutil.which("wine64") or "/usr/lib/wine/wine64"
    if not Path(program).is_file():
        raise SystemExit("Wine was not found. Type: apt-get install --no-install-recommends wine64")
    environment = {**os.environ, "WINEPREFIX": str(root / "wine"), "WINEDEBUG": "-all"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(  # by pipes: Wine's Python does not open files as its streams
        [program, *command],
        env=environment,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    sys.stdout.write(done.stdout.decode(errors="replace"))
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")


def download(to: Path, *names: str, depends: bool = True) -> None:
    """Download packages for Windows' Python 3.11."""
    options = [*FOR_WINDOWS, *([] if depends else ["--no-deps"])]
    subprocess.run([*PIP, "download", "--quiet", "--dest", to, *options, *names], check=True)


def make_python(root: Path, work: Path) -> None:
    """Make python.exe, its libraries and modules, and what Wine lacks of Windows."""
    download(work, PYTHON, depends=False)
    (wheel,) = work.glob("panda3d-*.whl")
    folder = root / "DLLs"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            file = Path(name)
            # Wine has the C library.
            if file.parts[0] == "deploy_libs" and not file.name.startswith("api-ms-"):
                (folder / file.name).write_bytes(archive.read(name))
    for name in ("python311.dll", "VCRUNTIME140.dll"):
        shutil.move(folder / name, root / name)
    this = here()
    assert this is not None
    debian = work / "debian"
    debian.mkdir(exist_ok=True)
    for package in Debian(this.debian, work).download(*MODULES):
        unpack(package, debian)
    shutil.copytree(
        debian / "usr/lib/python3.11",
        root / "Lib",
        ignore=shutil.ignore_patterns("lib-dynload", "*.so", "test", "EXTERNALLY-MANAGED"),
        ignore_dangling_symlinks=True,
    )
    definitions = work / "python3.def"
    entries = "".join(f"  {n} = python311.{n}\n" for n in sorted(exports(root / "python311.dll")))
    definitions.write_text(f"LIBRARY python3.dll\nEXPORTS\n{entries}")
    empty = work / "empty.c"
    empty.write_text("int wherry_empty;\n")
    compiler = [zig(), "cc", "-target", "x86_64-windows-gnu", "-O2", "-s"]
    for command in (
        ["-municode", HERE / "python.c", "-o", root / "python.exe"],
        ["-shared", HERE / "prng.c", "-ladvapi32", "-o", root / "bcryptprimitives.dll"],
        ["-shared", empty, definitions, "-o", root / "python3.dll"],
    ):
        subprocess.run([*compiler, *command], check=True)


def check(wheel: Path, work: Path, steps: list[str]) -> None:
    """Make the Python in `work`, install the wheel in it, and run accept.py's steps there."""
    root = (work / "root").resolve()
    shutil.rmtree(root, ignore_errors=True)
    make_python(root, work)
    packages = root / "packages"
    download(packages, str(wheel), "pip", *ALSO)
    wine(root, "winecfg", "-v", "win10")
    (pip,) = packages.glob("pip-*.whl")
    install = ["install", "--quiet", "--no-index", "--no-compile", "--no-warn-script-location"]
    install += ["--find-links", "packages"]
    given = [rf"packages\{wheel.name}", *ALSO]
    wine(root, "python.exe", rf"packages\{pip.name}\pip", *install, *given)
    shutil.copy(HERE.with_name("accept.py"), root)
    wine(root, "python.exe", "accept.py", *(steps or STEPS))


def main() -> None:
    """Check the wheel that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("work", type=Path, help="a folder for Python, Wine's files and downloads")
    parser.add_argument("steps", nargs="*", help=f"of accept.py; default: {' '.join(STEPS)}")
    options = parser.parse_args()
    check(options.wheel, options.work, options.steps)


if __name__ == "__main__":
    main()
