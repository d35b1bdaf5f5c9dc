"""Builds wheels that need no compiler: `python -m wheels.build`, which `make wheels` runs.

    dist/wherry-VERSION-py3-none-PLATFORM.whl    for every supported Python
    dist/SHA256SUMS

Zig's Clang compiles the C++; a folder here for each system says how (zig.cmake, system.py). The
same sources make the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .finish import finish
from .machines import MACHINES, Machine
from .macos import system as macos
from .manylinux import system as manylinux
from .sources import PIP, ROOT, site_packages, zig
from .windows import system as windows

HERE = Path(__file__).resolve().parent
LARGEST = 25 * 1000**2  # bytes of a wheel
SYSTEMS: dict[str, ModuleType] = {"manylinux": manylinux, "macos": macos, "windows": windows}


def settings(machine: Machine, own: dict[str, Any], work: Path, browser: Path | None) -> list[str]:
    """Return pip's configuration settings for scikit-build-core; own: the system's for CMake."""
    values = {
        "CMAKE_TOOLCHAIN_FILE": HERE / machine.system / "zig.cmake",
        "CMAKE_UNITY_BUILD": "ON",
        "Python_EXECUTABLE": sys.executable,
        "WHERRY_ZIG": zig(),
        "WHERRY_PREFIXES": f"{ROOT};{site_packages()}",
        "WHERRY_WEB": "OFF",
        "WHERRY_PAGE": "OFF",
        "WHERRY_WEB_BUILT": browser or "",
        **own,
    }
    given = [f"cmake.define.{name}={value}" for name, value in values.items()]
    given += [f"build-dir={work / 'cmake'}", "cmake.build-type=Release", "install.strip=false"]
    return [argument for value in given for argument in ("-C", value)]


def build(machine: Machine, browser: Path | None, work: Path, out: Path) -> Path:
    """Build one wheel; return it.

    Args:
        machine: what to build for.
        browser: a build's folder with the core for browsers and the page; None: without them.
        work: for what is made on the way; kept, so that the next build is short.
        out: the folder of the wheel.
    """
    work = work.resolve()
    system = SYSTEMS[machine.system]
    prepared = system.prepare(machine, work)
    raw = work / "raw"
    for old in raw.glob("*.whl"):
        old.unlink()
    given = settings(machine, prepared.settings, work, browser)
    tools = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "CMAKE_GENERATOR": "Ninja",
        # Zig has a cache of its own, and other caches take `cc` for a file to compile.
        "CMAKE_C_COMPILER_LAUNCHER": "",
        "CMAKE_CXX_COMPILER_LAUNCHER": "",
        "ZIG_LOCAL_CACHE_DIR": str(work / "zig"),
    }
    subprocess.run(
        [*PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", raw, *given, ROOT],
        check=True,
        env=environment,
    )
    (raw_wheel,) = raw.glob("*.whl")
    wheel = finish(raw_wheel, machine, prepared.parts, browser, work / "finish", out)
    system.check(wheel, machine, work)
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"{wheel} has {wheel.stat().st_size} bytes; {LARGEST} are accepted")
    return wheel


def write_sums(out: Path) -> None:
    """Write SHA256SUMS of a folder's wheels, as sha256sum reads them."""
    lines = [
        f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n"
        for wheel in sorted(out.glob("*.whl"))
    ]
    (out / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    """Build the wheels that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", action="append", choices=MACHINES, help="default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "wheels")
    core = parser.add_mutually_exclusive_group(required=True)
    core.add_argument("--browser", type=Path, help="a build with the core for browsers: build/dev")
    core.add_argument("--no-browser", action="store_true", help="without the core for browsers")
    options = parser.parse_args()
    browser = options.browser.resolve() if options.browser else None
    if browser and not (browser / "web" / "wherry-core.o").is_file():
        raise SystemExit(f"{browser} has no web/wherry-core.o. Type: make native, or --no-browser")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.machine or MACHINES:
        wheel = build(MACHINES[name], browser, options.work / name, options.out)
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    write_sums(options.out)


if __name__ == "__main__":
    main()
